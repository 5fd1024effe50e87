package trace

import (
	"fmt"

	"github.com/ringcache/ringcache/bench/load"
)

// The size of a synthetic load at scale 1.
const (
	baseKeys     = 100_000
	baseRequests = 1_000_000
)

// shape makes the ids of a load of n keys and about m requests, one for each call.
type shape func(n, m int) (next func() uint64)

// synthetic lists the loads that are made here.
func synthetic() []Source {
	var all []Source
	for _, s := range []float64{0.7, 0.8, 0.9, 0.99, 1.1, 1.2} {
		all = append(all, made(fmt.Sprintf("zipf-%v", s), func(n, _ int) func() uint64 {
			return load.NewZipf(1, uint64(n), s).Next
		}))
	}
	return append(all,
		made("scan-zipf", newScans),
		made("loop", newLoop),
		made("loops", newLoops),
		made("churn", newChurn),
		made("shift", newShift),
	)
}

func made(name string, make shape) Source {
	return Source{Name: name, Group: Synthetic, open: func(scale int) (*Trace, error) {
		n, m := baseKeys*scale, baseRequests*scale
		return record(make(n, m), m), nil
	}}
}

// record takes m ids from next and numbers them in the order of their appearance,
// as recorded traces do.
func record(next func() uint64, m int) *Trace {
	t := &Trace{Requests: make([]Request, m)}
	var keys []uint32 // by id, counted from 1; 0 for ids that have not appeared
	for i := range t.Requests {
		id := next()
		if id >= uint64(len(keys)) {
			keys = append(keys, make([]uint32, id+1-uint64(len(keys)))...)
		}
		if keys[id] == 0 {
			t.Keys++
			keys[id] = uint32(t.Keys)
		}
		t.Requests[i].Key = keys[id] - 1
	}
	return t
}

// newLoop goes round all keys in order.
func newLoop(n, _ int) func() uint64 {
	id := -1
	return func() uint64 {
		id = (id + 1) % n
		return uint64(id)
	}
}

// newScans is Zipf 0.99, which every n/5 requests is interrupted by a scan of
// n/20 keys that nobody has asked for and nobody will ask for again: a fifth of
// the requests and about two thirds of the keys.
func newScans(n, _ int) func() uint64 {
	zipf := load.NewZipf(1, uint64(n), 0.99)
	scan := uint64(n)
	every, length := n/5, n/20
	count := 0
	return func() uint64 {
		count = (count + 1) % (every + length)
		if count < every {
			return zipf.Next()
		}
		scan++
		return scan - 1
	}
}

// newLoops goes round in loops that are a little longer than a cache of 1, 10 or
// 30 % of the keys: five times each, and each time elsewhere. What a policy learns
// from keys that it has just dropped is wrong here.
func newLoops(n, _ int) func() uint64 {
	const rounds = 5
	lengths := []int{n * 12 / 1000, n * 12 / 100, n * 36 / 100}
	phase, at := 0, 0
	start := uint64(0)
	return func() uint64 {
		length := lengths[phase%len(lengths)]
		id := (start + uint64(at%length)) % uint64(n)
		if at++; at == rounds*length {
			start += uint64(length)
			phase, at = phase+1, 0
		}
		return id
	}
}

// newChurn is Zipf 0.99 over a window of half the keys, which moves on by the
// other half in the course of the load.
func newChurn(n, m int) func() uint64 {
	zipf, top := load.NewZipf(1, uint64(n/2), 0.99), uint64(n/2-1)
	every, count := 2*m/n, 0
	return func() uint64 {
		id := top - zipf.Next()
		if count++; count == every {
			count = 0
			top++
		}
		return id
	}
}

// newShift is Zipf 0.99 whose popularity is dealt anew ten times, all at once.
func newShift(n, m int) func() uint64 {
	zipf := load.NewZipf(1, uint64(n), 0.99)
	every := m / 10
	count, shift := 0, uint64(0)
	return func() uint64 {
		if count++; count%every == 0 {
			shift += uint64(n)*618/1000 + 1 // the golden ratio spreads the ten best
		}
		return (zipf.Next() + shift) % uint64(n)
	}
}
