package churn

import (
	"fmt"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/store"
)

const invalidations = 10

// space is a namespace: the ids of [from, to).
type space struct {
	target
	whole    store.Space // nil in a store without namespaces
	from, to int
}

// spaces divides the ids among two namespaces.
func (r *run) spaces() []space {
	half := len(r.sizes) / 2
	all := []space{{from: 0, to: half}, {from: half, to: len(r.sizes)}}
	for i := range all {
		s := &all[i]
		s.target = r.store
		if named, ok := r.store.(store.Spacer); ok {
			s.whole = named.Space(fmt.Sprintf("space %d", i))
			s.target = s.whole
		}
	}
	return all
}

// use directs reads and writes to the namespace.
func (r *run) use(s *space) {
	r.flush()
	r.target = s.target
}

func (r *run) fillSpace(s *space) {
	r.use(s)
	for id := s.from; id < s.to; id++ {
		r.set(id, r.draw())
	}
}

// invalidate removes all entries of the namespace: one by one where the store has no
// namespaces.
func (r *run) invalidate(s *space) error {
	if s.whole == nil {
		for id := s.from; id < s.to; id++ {
			r.del(id)
		}
		r.flush()
		r.writes.n -= s.to - s.from // a write is an entry that is set again, its Del included
		return nil
	}
	r.flush()
	clear(r.sizes[s.from:s.to])
	return s.whole.Invalidate()
}

// doInvalidate fills two namespaces, and then invalidates and fills the second one again and again.
func doInvalidate(r *run) error {
	all := r.spaces()
	r.fillSpace(&all[0])
	r.fillSpace(&all[1])
	r.startTiming()
	for range invalidations {
		if err := r.invalidate(&all[1]); err != nil {
			return err
		}
		r.fillSpace(&all[1])
	}
	return nil
}

// checkInvalidated notes what is found of each namespace.
func checkInvalidated(r *run) error {
	all := r.spaces()
	for i, metric := range []string{Untouched, Found} {
		r.use(&all[i])
		t, err := r.look(all[i].from, all[i].to, false)
		if err != nil {
			return err
		}
		r.metrics[metric] = t.share()
	}
	return nil
}

// The entries of delete-half: the old ones, of 80 % of the bound, come first, half of them go,
// and the new ones have 32 %. That leaves 72 %.
func oldKeys(c Size) int  { return c.entries() * 80 / 72 }
func halfKeys(c Size) int { return oldKeys(c) + c.entries()*32/72 }

func doDeleteHalf(r *run) error {
	old := oldKeys(r.Size)
	for id := range old {
		r.set(id, r.draw())
	}
	r.startTiming()
	for id := range old {
		if load.Mix(uint64(id))%2 == 0 {
			r.del(id)
		}
	}
	for id := old; id < len(r.sizes); id++ {
		r.set(id, r.draw())
	}
	return nil
}

func checkHalf(r *run) error {
	old, err := r.look(0, oldKeys(r.Size), false)
	if err != nil {
		return err
	}
	added, err := r.look(oldKeys(r.Size), len(r.sizes), false)
	r.metrics[FoundOld], r.metrics[FoundNew] = old.share(), added.share()
	return err
}
