package churn

import (
	"math"

	"github.com/ringcache/ringcache/bench/load"
)

const (
	deleteEvery  = 10 // one operation in so many is a delete, at random
	readsPerSet  = 3
	zipfExponent = 0.99
	zipfDraws    = 1 << 20 // at a time

	mixedMB    = 1024
	mixedLive  = 27.0 / mixedMB
	mixedLeast = 1 << 10
	mixedMost  = 260 << 10
)

// mixedMean is the mean of lengths whose logarithm is uniform.
var mixedMean = int(float64(mixedMost-mixedLeast) / math.Log(float64(mixedMost)/mixedLeast))

// churnKeys is how many keys there are when so many are live: in the long run, each is as likely
// to have been deleted last as an operation is to be a delete.
func churnKeys(c Size) int { return c.entries() * deleteEvery / (deleteEvery - 1) }

func drawnLargest(c Size) int { return c.Mean/2 + c.Mean }

// draw returns a length from half to one and a half of the mean.
func (r *run) draw(int) int { return r.Mean/2 + int(r.rnd.Below(uint64(r.Mean)+1)) }

// drawMixed returns a length whose logarithm is uniform.
func (r *run) drawMixed(int) int {
	u := float64(r.rnd.Uint64()>>11) / (1 << 53)
	return int(mixedLeast * math.Pow(float64(mixedMost)/mixedLeast, u))
}

func (r *run) uniform() int { return int(r.rnd.Below(uint64(len(r.sizes)))) }

// fill sets the share of the keys that is going to be live.
func (r *run) fill(size func(id int) int) {
	for id := range r.sizes {
		if id%deleteEvery == 0 {
			continue
		}
		r.set(id, size(id))
	}
	r.startTiming()
}

// write overwrites or deletes a key.
func (r *run) write(id int, size func(id int) int) {
	if r.rnd.Below(deleteEvery) == 0 {
		r.del(id)
	} else {
		r.set(id, size(id))
	}
}

func (r *run) churn(size func(id int) int) error {
	r.fill(size)
	for !r.turns(float64(r.Turns)) {
		r.write(r.uniform(), size)
	}
	return nil
}

func doChurn(r *run) error { return r.churn(r.draw) }
func doMixed(r *run) error { return r.churn(r.drawMixed) }

// checkAll notes how many of the live keys are found.
func checkAll(r *run) error {
	t, err := r.look(0, len(r.sizes), false)
	r.metrics[Found] = t.share()
	r.metrics[LostKeys] = float64(t.live - t.found)
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
	r.fill(r.draw)
	z := zipf{r: r}
	reads, hits := 0, 0
	ids := make([]int, 0, batch)
	for !r.turns(float64(r.Turns)) {
		for range batch {
			r.write(z.next(), r.draw)
		}
		for range readsPerSet {
			ids = ids[:0]
			for range batch {
				if id := z.next(); r.sizes[id] > 0 {
					ids = append(ids, id)
				}
			}
			if err := r.get(ids); err != nil {
				return err
			}
			if r.turns(float64(r.Turns) / 2) {
				reads += len(ids)
				hits += r.hits(len(ids))
			}
		}
	}
	r.metrics[Hits] = 100 * float64(hits) / float64(max(1, reads))
	return nil
}

// hits returns how many of the last n reads have found something.
func (r *run) hits(n int) int {
	hits := 0
	for _, ok := range r.found[:n] {
		if ok {
			hits++
		}
	}
	return hits
}
