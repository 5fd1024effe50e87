package churn

import "slices"

// growth is how many bytes a request adds to a session.
const growth = 30

// begin returns the length of a new session.
func (r *run) begin() int { return r.Mean / 2 }

// outgrown reports whether a session is to begin anew instead of growing.
func (r *run) outgrown(id int) bool { return r.sizes[id]+growth > drawnLargest(r.Size) }

// fillGrown sets all sessions, each as long as it is at some time of its life.
func (r *run) fillGrown() {
	steps := uint64((drawnLargest(r.Size)-r.begin())/growth + 1)
	for id := range r.sizes {
		r.set(id, r.begin()+growth*int(r.rnd.Below(steps)))
	}
	r.startTiming()
}

func doGrow(r *run) error {
	r.fillGrown()
	requests, lost := 0, 0
	ids := make([]int, 0, batch)
	for !r.turns(float64(r.Turns)) {
		ids = ids[:0]
		for range min(batch, len(r.sizes)) {
			if id := r.uniform(); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		if err := r.get(ids); err != nil {
			return err
		}
		if r.turns(float64(r.Turns) / 2) {
			requests += len(ids)
			lost += len(ids) - r.hits(len(ids))
		}
		for i, id := range ids {
			size := r.sizes[id] + growth
			if !r.found[i] || r.outgrown(id) {
				size = r.begin()
			}
			r.set(id, size)
		}
	}
	r.metrics[Lost] = 1000 * float64(lost) / float64(max(1, requests))
	return nil
}

func doAppend(r *run) error {
	r.fillGrown()
	for !r.turns(float64(r.Turns)) {
		id := r.uniform()
		if r.outgrown(id) {
			r.set(id, r.begin())
		} else {
			r.append(id, growth)
		}
	}
	return nil
}

// checkParts notes how many values are whole, and of how many the beginning was lost.
func checkParts(r *run) error {
	t, err := r.look(0, len(r.sizes), true)
	r.metrics[Found] = t.share()
	r.metrics[Parts] = float64(t.parts) / float64(max(1, t.live))
	return err
}
