package measure

// What operations take in a large cache, in seconds, measured on two virtual cores
// of 2026. A store in between the fastest and the slowest is meant.
const (
	setSeconds   = 0.8e-6
	getSeconds   = 0.5e-6 // of verify: sequential ids
	byteSeconds  = 0.4e-9 // for every byte of key and value
	drawSeconds  = 60e-9  // of a Zipf id
	startSeconds = 0.05   // of the process
)

// Seconds estimates how long a run takes with so many goroutines on as many cores.
func (l *Load) Seconds(s Scale, goroutines int) float64 {
	n := float64(l.Entries(s))
	bytes := float64(l.Format.Bytes()) * byteSeconds
	set, get := setSeconds+bytes, getSeconds+bytes
	if l.Entries(s) <= referenceItems {
		set, get = set/3, get/3 // it stays in the processor's caches
	}
	parallel := float64(goroutines)
	switch {
	case l.Group == Latency && l.Full:
		return startSeconds + 2*n*set + float64(s.Sets)*(set+get) + n*get
	case l.Group == Latency:
		return startSeconds + n*(set+2*get)
	case l.Group == Live:
		return startSeconds + n*(set+get)/parallel + collections*n*10e-9
	case l.op == nil: // fill
		return startSeconds + n*(set+get)/parallel
	}
	ops := n * (set + get)
	if l.warm || l.Full {
		ops += 2 * n * set
	}
	draws := 0.0
	if l.order.start != nil && !l.Full {
		draws = float64(min(zipfDraws, 2*s.Entries)) * drawSeconds
	}
	return startSeconds + draws + s.Duration.Seconds() + ops/parallel
}
