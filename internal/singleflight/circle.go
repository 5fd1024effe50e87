package singleflight

import "sync"

// A function may wait for other calls. Where these wait for the function's own, be it by way
// of others, none would ever end. So groups note what they wait for, and a wait that would
// close a circle is refused. Any circle has a wait that was the last to begin, so none is
// missed.

// circles guards what all groups wait for: a circle may lead through several caches.
var circles sync.Mutex

// awaited is what a group waits for of another.
type awaited struct {
	key []byte // of the call, or of the first of several
	n   int
}

// Await notes that the function of g waits, until Awaited, for the call of group on that has
// the key. If on waits for g, or is g, it notes nothing and returns the keys of the circle, in
// the order in which each waits for the next, and the last for the first. A nil group, which
// stands for who is no function of a group, closes no circle.
func (g *Group) Await(on *Group, key []byte) (circle [][]byte) {
	if g == nil {
		return nil
	}
	circles.Lock()
	defer circles.Unlock()
	if a := g.awaits[on]; a != nil {
		a.n++
		return nil
	}
	if circle = on.pathLocked(g, [][]byte{key}, map[*Group]bool{}); circle != nil {
		return circle
	}
	if g.awaits == nil {
		g.awaits = make(map[*Group]*awaited)
	}
	g.awaits[on] = &awaited{key: key, n: 1}
	return nil
}

// Awaited is called when a wait has ended that Await has noted.
func (g *Group) Awaited(on *Group) {
	if g == nil {
		return
	}
	circles.Lock()
	defer circles.Unlock()
	a := g.awaits[on]
	if a.n--; a.n == 0 {
		delete(g.awaits, on)
	}
}

// pathLocked returns keys, and those by which g waits for the group to; nil if it does not.
func (g *Group) pathLocked(to *Group, keys [][]byte, seen map[*Group]bool) [][]byte {
	if g == to {
		return keys
	}
	if seen[g] {
		return nil
	}
	seen[g] = true
	for on, a := range g.awaits {
		if all := on.pathLocked(to, append(keys, a.key), seen); all != nil {
			return all
		}
	}
	return nil
}
