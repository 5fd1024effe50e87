package ringtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringcache/ringcache"
)

// gauges checks what the cache says about itself.
func (r *Runner) gauges() error {
	var s ringcache.Stats
	r.C.UpdateStats(&s)
	n := r.C.Len()
	switch {
	case uint64(n) != s.EntriesCount:
		return fmt.Errorf("Len is %d, EntriesCount %d", n, s.EntriesCount)
	case n > r.model.Len()+len(r.lapsed)+len(r.negatives):
		return fmt.Errorf("Len is %d, at most %d keys can be live, %d expired and %d negative",
			n, r.model.Len(), len(r.lapsed), len(r.negatives))
	case r.told && n != len(r.live):
		return fmt.Errorf("Len is %d, but %d entries were set that OnRemove was not told of",
			n, len(r.live))
	case s.MaxBytesSize != uint64(r.Bound):
		return fmt.Errorf("MaxBytesSize is %d, the bound %d", s.MaxBytesSize, r.Bound)
	case s.ReservedBytes > s.MaxBytesSize:
		return fmt.Errorf("ReservedBytes %d is above MaxBytesSize %d", s.ReservedBytes, s.MaxBytesSize)
	case s.BytesSize > s.ReservedBytes:
		return fmt.Errorf("BytesSize %d is above ReservedBytes %d", s.BytesSize, s.ReservedBytes)
	case s.IndexBytes > s.ReservedBytes:
		return fmt.Errorf("IndexBytes %d is above ReservedBytes %d", s.IndexBytes, s.ReservedBytes)
	case s.Corruptions > PolicyOf(r.C).DecompressErrors:
		return fmt.Errorf("%d corruptions", s.Corruptions)
	case s.Misses > s.GetCalls:
		return fmt.Errorf("%d misses in %d reads", s.Misses, s.GetCalls)
	}
	return nil
}

// Finish reads everything that may still be there: the cache must hold exactly
// as many entries as it counts.
func (r *Runner) Finish() error {
	if err := r.gauges(); err != nil {
		return err
	}
	r.C.DeleteExpired()
	clear(r.lapsed)
	n := r.C.Len()
	live := r.countNegatives()
	for _, id := range slices.Sorted(r.model.Keys()) {
		got, ok := r.C.Peek(r.dst[:0], r.KeyOf(id)) // a Get may make others leave
		r.dst = got
		if !ok {
			continue
		}
		live++
		if err := r.hit(id, got); err != nil {
			return fmt.Errorf("key %d at the end: %w", id, err)
		}
	}
	var s ringcache.Stats
	r.C.UpdateStats(&s)
	if live > n || live < n-int(PolicyOf(r.C).DecompressErrors) {
		return fmt.Errorf("Len is %d, but %d keys or negative entries are found", n, live)
	}
	return nil
}

// Trail describes the last operations, oldest first.
func (r *Runner) Trail() string {
	var b strings.Builder
	fmt.Fprintf(&b, "geometry %s; the last of %d operations:\n", Describe(r.G), r.Steps)
	for i := max(0, r.Steps-len(r.recent)); i < r.Steps; i++ {
		o := r.recent[i%len(r.recent)]
		fmt.Fprintf(&b, "  %-12s key=%-5d size=%-7d flags=%#02x arg=%d\n",
			opNames[o.Kind], o.ID, r.sizeOf(o), o.flags, o.Arg)
	}
	return b.String()
}

// WithinBound returns an error if the cache has taken more memory than it may.
func (r *Runner) WithinBound() error {
	if s := Shared(r.C); s.Pool.Used() > s.Bound() {
		return fmt.Errorf("%d bytes are in use, the bound is %d", s.Pool.Used(), s.Bound())
	}
	return nil
}
