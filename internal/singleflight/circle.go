package singleflight

import (
	"bytes"
	"slices"
	"sync"
)

// A function may wait for other calls. If these wait for the function's own call, directly or
// through others, none of them would ever end. Groups therefore record what they wait for, and a
// wait that would close a cycle is refused. The last wait of a cycle to begin finds all the others
// recorded, so no cycle is missed.

// circles guards what all groups wait for. It is global because a cycle may involve several caches.
var circles sync.Mutex

// Await records that the function of g waits, until Awaited, for the call of group on with the
// given key. If on waits for g, or is g, it records nothing and returns the keys of the cycle,
// ordered so that each waits for the next, and the last for the first. A nil g stands for a caller
// that is not the function of a group, and closes no cycle.
func (g *Group) Await(on *Group, key []byte) (circle [][]byte) {
	if g == nil {
		return nil
	}
	circles.Lock()
	defer circles.Unlock()
	if g.awaits[on] == nil {
		circle = on.pathLocked(g, [][]byte{key}, map[*Group]bool{})
	}
	if circle != nil {
		return circle
	}
	if g.awaits == nil {
		g.awaits = make(map[*Group][][]byte)
	}
	g.awaits[on] = append(g.awaits[on], key)
	return nil
}

// Awaited records the end of a wait that Await has recorded.
func (g *Group) Awaited(on *Group, key []byte) {
	if g == nil {
		return
	}
	circles.Lock()
	defer circles.Unlock()
	keys := g.awaits[on] // most often they end in this order
	i := slices.IndexFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
	keys[i] = keys[0]
	if g.awaits[on] = keys[1:]; len(keys) == 1 {
		delete(g.awaits, on)
	}
}

// pathLocked returns keys followed by the keys through which g waits for group to, or nil if it
// does not wait for it.
func (g *Group) pathLocked(to *Group, keys [][]byte, seen map[*Group]bool) [][]byte {
	if g == to {
		return keys
	}
	if seen[g] {
		return nil
	}
	seen[g] = true
	for on, by := range g.awaits {
		if all := on.pathLocked(to, append(keys, by[0]), seen); all != nil {
			return all
		}
	}
	return nil
}
