package measure

import "github.com/ringcache/ringcache/bench/load"

// order says which ids are next.
type order struct {
	start func(*worker) // optional, before anything is timed
	draw  func(*worker) // fills w.ids
}

var (
	sequential = order{draw: func(w *worker) { w.count(w.entries) }}
	twice      = order{draw: func(w *worker) { w.count(2 * w.entries) }}
	uniform    = order{draw: func(w *worker) { w.uniform(0) }}
	absent     = order{draw: func(w *worker) { w.uniform(w.entries) }}
	one        = order{draw: func(*worker) {}} // always the first id: ids are 0
	fresh      = order{start: (*worker).startFresh, draw: (*worker).fresh}
)

// zipf draws ids with Zipf popularity of that exponent.
func zipf(exponent float64) order {
	return order{start: func(w *worker) { w.startZipf(exponent) }, draw: (*worker).zipf}
}

// count goes round and round through [0, end).
func (w *worker) count(end uint64) {
	for i := range w.ids {
		w.ids[i] = w.next
		if w.next++; w.next == end {
			w.next = 0
		}
	}
}

func (w *worker) uniform(from uint64) {
	for i := range w.ids {
		w.ids[i] = from + w.rnd.Below(w.entries)
	}
}

func (w *worker) startZipf(exponent float64) {
	w.draws = load.ZipfIDs(&w.rnd, w.entries, exponent, w.zipfDraws)
}

func (w *worker) zipf() {
	draws := w.draws[w.next:][:batch] // batch divides their number
	for i, id := range draws {
		w.ids[i] = uint64(id)
	}
	w.next = (w.next + batch) % uint64(len(w.draws))
}

func (w *worker) startFresh() { w.next = w.firstFresh() }

func (w *worker) firstFresh() uint64 { return uint64(w.index+1) << freshShift }

// fresh counts on through ids that nobody has used.
func (w *worker) fresh() {
	for i := range w.ids {
		w.ids[i] = w.next
		w.next++
	}
}
