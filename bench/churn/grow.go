package churn

// growth is how many bytes an append adds to a value.
const growth = 30

// doAppend makes values longer, until they begin anew with half the mean.
func doAppend(r *run) error {
	begin, most := r.Mean/2, r.largest()
	for id := range r.sizes { // each as long as it is at some time of its life
		r.set(id, begin+growth*int(r.rnd.Below(uint64((most-begin)/growth+1))))
	}
	r.startTiming()
	for !r.turns(float64(r.Turns)) {
		if id := r.uniform(); r.sizes[id]+growth > most {
			r.set(id, begin)
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
