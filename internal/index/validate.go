package index

import "fmt"

// Validate checks the index's invariants, and calls fn with each live slot and
// the part of its hash that is known. It is for tests.
func (x *Index) Validate(w Windows, fn func(hash, slot uint64) error) error {
	passed := make([][2]uint64, x.cur.size())
	var used [2]int32
	for n := range x.cur.size() {
		g := x.Group(n)
		for i := range g.slots {
			s, tag := g.Load(i), g.tagAt(i)
			if tag == 0 {
				if s != 0 {
					return fmt.Errorf("group %d: empty slot %d is not 0", n, i)
				}
				continue
			}
			used[Ring(s)]++
			h := knownHash(s, tag)
			for p := x.Path(h); p.At != n; p.Next() {
				passed[p.At][s>>hashAt&1]++
				if p.Left == 0 {
					return fmt.Errorf("I4: slot %d of group %d is not on its path", i, n)
				}
			}
			if !w.live(s) {
				if win := w.of(s); win.Age(s) > win.Mask/4*3 {
					return fmt.Errorf("I5: stale slot of age %d in a space of %d", win.Age(s), win.Mask)
				}
			} else if err := fn(h, s); err != nil {
				return fmt.Errorf("group %d slot %d: %w", n, i, err)
			}
		}
	}
	for n := range x.cur.size() {
		for side, has := range passed[n] {
			count := x.Group(n).ctrl >> (overflowAt0 + overflowBits*side) & overflowMost
			if count != has && count != overflowMost { // which may be any number
				return fmt.Errorf("I4: group %d counts %d passed of side %d, has %d", n, count, side, has)
			}
		}
	}
	if used != x.used {
		return fmt.Errorf("I9: counts %v slots of the rings, has %v", x.used, used)
	}
	return nil
}
