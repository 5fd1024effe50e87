package churn

import (
	"fmt"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/store"
)

const (
	invalidations = 10 // of each namespace
	inTurn        = 4  // namespaces that are invalidated in turn
)

// space is a namespace: the ids of [from, to).
type space struct {
	target
	whole    store.Space // nil in a store without namespaces
	from, to int
}

// spaces divides the ids among n namespaces.
func (r *run) spaces(n int) []space {
	all := make([]space, n)
	for i := range all {
		s := &all[i]
		s.from, s.to = len(r.sizes)*i/n, len(r.sizes)*(i+1)/n
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
		r.set(id, r.draw(id))
	}
}

// invalidate removes all entries of the namespace: one by one where the store has no
// namespaces.
func (r *run) invalidate(s *space) error {
	if s.whole == nil {
		for id := s.from; id < s.to; id++ {
			r.del(id)
		}
		return nil
	}
	r.flush()
	clear(r.sizes[s.from:s.to])
	return s.whole.Invalidate()
}

// renew fills all namespaces, and then invalidates and fills those from first on, in turn.
func (r *run) renew(all []space, first int) error {
	for i := range all {
		r.fillSpace(&all[i])
	}
	r.startTiming()
	for range invalidations {
		for i := first; i < len(all); i++ {
			if err := r.invalidate(&all[i]); err != nil {
				return err
			}
			r.fillSpace(&all[i])
		}
	}
	return nil
}

func doInvalidate(r *run) error      { return r.renew(r.spaces(2), 1) }
func doInvalidateTurns(r *run) error { return r.renew(r.spaces(inTurn), 0) }

// lookSpaces returns what is found of each of n namespaces.
func (r *run) lookSpaces(n int) ([]tally, error) {
	tallies := make([]tally, n)
	for i, s := range r.spaces(n) {
		r.use(&s)
		var err error
		if tallies[i], err = r.look(s.from, s.to, false); err != nil {
			return nil, err
		}
	}
	return tallies, nil
}

func checkInvalidated(r *run) error {
	t, err := r.lookSpaces(2)
	if err != nil {
		return err
	}
	r.metrics[Untouched], r.metrics[Found] = t[0].share(), t[1].share()
	return nil
}

func checkTurns(r *run) error {
	all, err := r.lookSpaces(inTurn)
	if err != nil {
		return err
	}
	var sum tally
	least := 1.0
	for _, t := range all {
		sum.live += t.live
		sum.found += t.found
		least = min(least, t.share())
	}
	r.metrics[Found], r.metrics[Least] = sum.share(), least
	return nil
}

// The entries of delete-half: the old ones, of 80 % of the bound, come first, half of them go,
// and the new ones have 32 %. That leaves 72 %.
func oldKeys(c Case) int  { return c.entries() * 80 / 72 }
func halfKeys(c Case) int { return oldKeys(c) + c.entries()*32/72 }

func doDeleteHalf(r *run) error {
	old := oldKeys(r.Case)
	for id := range old {
		r.set(id, r.draw(id))
	}
	r.startTiming()
	for id := range old {
		if load.Mix(uint64(id))%2 == 0 {
			r.del(id)
		}
	}
	for id := old; id < len(r.sizes); id++ {
		r.set(id, r.draw(id))
	}
	return nil
}

func checkHalf(r *run) error {
	old, err := r.look(0, oldKeys(r.Case), false)
	if err != nil {
		return err
	}
	added, err := r.look(oldKeys(r.Case), len(r.sizes), false)
	r.metrics[FoundOld], r.metrics[FoundNew] = old.share(), added.share()
	return err
}
