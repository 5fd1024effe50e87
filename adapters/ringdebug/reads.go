package ringdebug

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// countedKeys is the number of keys that a watch counts at once. A key with more than
	// 1/countedKeys of the reads is certain to be among them.
	countedKeys = 1024

	// samplesPerStep is the number of samples after which a watch halves its sampling rate. A watch
	// that has halved it has at least this many samples, so the count of a key with one percent of
	// the reads has a standard error of at most 4 %.
	samplesPerStep = 1 << 16
)

// Reads collects the keys that a program reads, so that the page can show the hottest ones. The
// zero value is ready for use. A Reads must not be copied after first use. It is safe for
// concurrent use.
//
// While there is no watch, a report reads one word of memory. During a watch, reports take a mutex:
// the first 65,536 all do, and then fewer and fewer.
type Reads struct {
	mu      sync.Mutex // held to change watches
	watches atomic.Pointer[[]*watch]
}

// Observe reports a read of key k, a hit or a miss. Call it next to the lookup. k is the key that
// is passed to the cache, and may be changed as soon as Observe returns. Observe allocates only
// during a watch.
func (r *Reads) Observe(k []byte) {
	if all := r.watches.Load(); all != nil {
		observe(*all, nil, k)
	}
}

// ObserveIn is Observe for a key in the namespace with that name ([ringcache.Cache.Namespace]).
func (r *Reads) ObserveIn(namespace string, k []byte) {
	if all := r.watches.Load(); all != nil {
		observe(*all, &namespace, k)
	}
}

func observe(all []*watch, namespace *string, k []byte) {
	for _, w := range all {
		w.observe(namespace, k)
	}
}

// watch counts the reads that are reported to a Reads for a while.
type watch struct {
	mask atomic.Uint64 // one in mask+1 reads is sampled

	mu   sync.Mutex
	keys *topK
	left int    // samples until the mask grows
	room []byte // buffer of observe, for namespace and key
}

// start begins a watch.
func (r *Reads) start() *watch {
	w := &watch{keys: newTopK(countedKeys), left: samplesPerStep}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []*watch{w}
	if others := r.watches.Load(); others != nil {
		all = append(all, *others...)
	}
	r.watches.Store(&all)
	return w
}

// stop ends a watch. A few more reads may still be counted.
func (r *Reads) stop(w *watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	others := slices.Clone(*r.watches.Load())
	others = slices.DeleteFunc(others, func(other *watch) bool { return other == w })
	if len(others) == 0 {
		r.watches.Store(nil)
		return
	}
	r.watches.Store(&others)
}

// observe counts a sampled read as the number of reads that it represents, so the expected count of
// a key is the number of its reads, even if the sampling rate changes.
func (w *watch) observe(namespace *string, k []byte) {
	mask := w.mask.Load()
	if mask != 0 && rand.Uint64()&mask != 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room = appendPlace(w.room[:0], namespace, k)
	w.keys.add(w.room, mask+1)
	if w.left--; w.left == 0 {
		w.left = samplesPerStep
		w.mask.Store(w.mask.Load()<<1 | 1)
	}
}

// appendPlace appends the key together with its namespace, if any, as the watch counts it: the
// length of the name plus one, or 0 if there is no namespace; the name; the key.
func appendPlace(dst []byte, namespace *string, k []byte) []byte {
	if namespace == nil {
		return append(append(dst, 0), k...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(*namespace))+1)
	return append(append(dst, *namespace...), k...)
}

// cutPlace is the inverse of appendPlace.
func cutPlace(place string) (namespace *string, k []byte) {
	n, size := binary.Uvarint([]byte(place))
	if n == 0 {
		return nil, []byte(place[size:])
	}
	end := size + int(n) - 1
	name := place[size:end]
	return &name, []byte(place[end:])
}
