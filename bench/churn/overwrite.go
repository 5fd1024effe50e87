package churn

import (
	"github.com/ringcache/ringcache/bench/load"
)

const (
	deleteEvery  = 10 // one operation in so many is a delete, at random
	readsPerSet  = 3
	zipfExponent = 0.99
	zipfDraws    = 1 << 20 // at a time
)

// churnKeys is how many keys there are when so many are live: in the long run, each is as likely
// to have been deleted last as an operation is to be a delete.
func churnKeys(c Size) int { return c.entries() * deleteEvery / (deleteEvery - 1) }

// largest returns the bytes of the largest value.
func (s Size) largest() int { return s.Mean/2 + s.Mean }

// draw returns a length from half to one and a half of the mean.
func (r *run) draw() int { return r.Mean/2 + int(r.rnd.Below(uint64(r.Mean)+1)) }

func (r *run) uniform() int { return int(r.rnd.Below(uint64(len(r.sizes)))) }

// fill sets the share of the keys that is going to be live.
func (r *run) fill() {
	for id := range r.sizes {
		if id%deleteEvery == 0 {
			continue
		}
		r.set(id, r.draw())
	}
	r.startTiming()
}

// write overwrites or deletes a key.
func (r *run) write(id int) {
	if r.rnd.Below(deleteEvery) == 0 {
		r.del(id)
	} else {
		r.set(id, r.draw())
	}
}

func doChurn(r *run) error {
	r.fill()
	for !r.turns(float64(r.Turns)) {
		r.write(r.uniform())
	}
	return nil
}

// checkAll notes how many of the live keys are found.
func checkAll(r *run) error {
	t, err := r.look(0, len(r.sizes), false)
	r.metrics[Found] = t.share()
	return err
}

// zipf draws ids.
type zipf struct {
	r     *run
	draws []uint32
}

func (z *zipf) next() int {
	if len(z.draws) == 0 {
		z.draws = load.ZipfIDs(&z.r.rnd, uint64(len(z.r.sizes)), zipfExponent, zipfDraws)
	}
	id := z.draws[0]
	z.draws = z.draws[1:]
	return int(id)
}

func doChurnZipf(r *run) error {
	r.fill()
	z := zipf{r: r}
	reads, hits := 0, 0
	ids := make([]int, 0, batch)
	for !r.turns(float64(r.Turns)) {
		for range batch {
			r.write(z.next())
		}
		for range readsPerSet {
			ids = ids[:0]
			for range batch {
				if id := z.next(); r.sizes[id] > 0 {
					ids = append(ids, id)
				}
			}
			found, err := r.get(ids)
			if err != nil {
				return err
			}
			if r.turns(float64(r.Turns) / 2) {
				reads += len(ids)
				hits += found
			}
		}
	}
	r.metrics[Hits] = 100 * float64(hits) / float64(max(1, reads))
	return nil
}
