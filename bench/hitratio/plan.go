// Package hitratio replays traces read-through on stores: Get, and on a miss Set.
// It decides how large values and caches are, and measures what a cache holds and
// what memory the process takes for it.
package hitratio

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/trace"
)

// Values says how large values are: Sized, or a number of bytes that all values have.
type Values string

// Sized takes the sizes of the trace where it has them. Elsewhere every key has its own size,
// within half of a mean that makes the cache as large as Limits.MinBudget wants it.
const Sized Values = "sized"

// Bytes returns the size that all values have; 0 if they differ.
func (v Values) Bytes() int {
	n, err := strconv.Atoi(string(v))
	if err != nil || n < leastValue || n > mostFixed {
		return 0
	}
	return n
}

// IsKnown reports whether there are such values.
func (v Values) IsKnown() bool { return v == Sized || v.Bytes() > 0 }

const (
	keyBytes   = 16
	leastDrawn = 100
	leastValue = 8 // a value begins with what it is recognised by
	mostFixed  = 1 << 20
)

// Limits bound a plan.
type Limits struct {
	MinBudget   int64 // bytes that a cache has at least
	MaxRequests int   // of one replay
	MaxCopied   int   // of one replay, where larger values can make up for more
	MaxValue    int   // mean size of drawn values, as far as MaxCopied allows
}

// DefaultLimits keep to budgets that are realistic for stores with a floor or
// steps of 32 MB, to ten entries in each of 512 buckets, and to replays of about a
// minute.
var DefaultLimits = Limits{
	MinBudget: 64 << 20, MaxRequests: 60_000_000, MaxCopied: 20_000_000, MaxValue: 12<<10 - keyBytes,
}

// Plan says how a load is replayed at one size of the cache.
type Plan struct {
	Load    string
	Percent float64 // of the footprint: the budget
	Values  Values
	Payload string  // kind of the values' content (package payload); empty: random
	Writes  float64 // share of the read-through requests that are updates instead

	Scale      int     // see trace.Source.Open
	Copies     int     // of the key space; 1 for a synthetic load, whatever its scale
	ValueBytes int     // mean of the drawn sizes; 0 if they are the trace's own
	Stretch    float64 // by which the trace's own are multiplied

	Keys, Requests int   // with all copies
	Footprint      int64 // bytes of all keys and values
	Budget         int64 // what every store is given
}

// EntryBytes returns the mean size of key and value.
func (p *Plan) EntryBytes() int { return int(p.Footprint / int64(p.Keys)) }

// Entries returns how many of mean size fit into the budget.
func (p *Plan) Entries() int { return int(p.Budget / int64(p.EntryBytes())) }

func (p *Plan) String() string { return fmt.Sprintf("%s, %v %%", p.Load, p.Percent) }

// ErrTooLong is why there is no plan: the replay would need too many requests.
var ErrTooLong = errors.New("too many requests are needed")

// NewPlan makes values and, where those cannot be large enough, the trace itself
// so large that the budget is at least lim.MinBudget. base is src at scale 1.
func NewPlan(
	src trace.Source, base *trace.Trace, percent float64, values Values, lim Limits,
) (*Plan, error) {
	f := fitter{src: src, base: base, lim: lim, share: percent / 100}
	p := &Plan{Load: src.Name, Percent: percent, Values: values, Scale: 1, Stretch: 1}
	var err error
	switch {
	case values.Bytes() > 0:
		p.ValueBytes = values.Bytes()
		err = f.fixed(p)
	case base.Sized:
		f.own(p)
	default:
		err = f.drawn(p)
	}
	if err != nil {
		return nil, fmt.Errorf("hitratio: plan %v: %w", p, err)
	}
	t, err := f.at(p.Scale)
	if err != nil {
		return nil, fmt.Errorf("hitratio: plan %v: %w", p, err)
	}
	p.measure(t)
	return p, nil
}

// fitter works out one plan.
type fitter struct {
	src    trace.Source
	base   *trace.Trace
	scaled *trace.Trace // the last one that at returned
	lim    Limits
	share  float64
}

// at returns the trace at a scale. Copies of a recorded one need no memory.
func (f *fitter) at(scale int) (*trace.Trace, error) {
	if f.base.Copies > 0 {
		t := *f.base
		t.Copies = scale
		return &t, nil
	}
	if scale == 1 {
		return f.base, nil
	}
	if f.scaled != nil && len(f.scaled.Requests) == scale*len(f.base.Requests) {
		return f.scaled, nil
	}
	var err error
	f.scaled, err = f.src.Open(scale)
	return f.scaled, err
}

// maxScale is the largest that keeps to a bound on requests.
func (f *fitter) maxScale(requests int) int { return max(1, requests/len(f.base.Requests)) }

// entries returns how many fit into the cache at a scale.
func (f *fitter) entries(scale int) (float64, error) {
	t, err := f.at(scale)
	if err != nil {
		return 0, err
	}
	return f.share * float64(t.Keys) * float64(t.Scale()), nil
}

// fixed has nothing to choose but the scale. The keys of a synthetic load grow
// less than in proportion, so that a second step may be needed.
func (f *fitter) fixed(p *Plan) error {
	for {
		n, err := f.entries(p.Scale)
		if err != nil {
			return err
		}
		lack := float64(f.lim.MinBudget) / (n * float64(keyBytes+p.ValueBytes))
		if lack <= 1 {
			return nil
		}
		next := max(p.Scale+1, int(math.Ceil(float64(p.Scale)*lack)))
		if next > f.maxScale(f.lim.MaxRequests) {
			return fmt.Errorf("%w: %d, at most %d", ErrTooLong, next*len(f.base.Requests), f.lim.MaxRequests)
		}
		p.Scale = next
	}
}

// own takes copies of the trace as far as MaxCopied allows, and
// stretches the sizes by what then is missing.
func (f *fitter) own(p *Plan) {
	t := *f.base
	p.measure(&t)
	lack := float64(f.lim.MinBudget) / float64(p.Budget)
	p.Scale = min(max(1, int(math.Ceil(lack))), f.maxScale(f.lim.MaxCopied))
	p.Stretch = max(1, lack/float64(p.Scale))
}

// drawn takes values up to the largest mean, then a larger scale, and beyond
// MaxCopied larger values after all.
func (f *fitter) drawn(p *Plan) error {
	n, err := f.entries(1)
	if err != nil {
		return err
	}
	fitting := func(n float64) int { return int(math.Ceil(float64(f.lim.MinBudget)/n)) - keyBytes }
	mean := min(max(fitting(n), leastDrawn), f.lim.MaxValue)
	lack := float64(f.lim.MinBudget) / (n * float64(keyBytes+mean))
	p.Scale = min(max(1, int(math.Ceil(lack))), f.maxScale(f.lim.MaxCopied))
	if n, err = f.entries(p.Scale); err != nil {
		return err
	}
	p.ValueBytes = max(fitting(n), leastDrawn)
	return nil
}

// measure sums up what t is with the plan's values.
func (p *Plan) measure(t *trace.Trace) {
	p.Copies = t.Scale()
	p.Keys = t.Keys * p.Copies
	p.Requests = t.Replays()
	p.Footprint = 0
	next := uint32(0)
	for _, r := range t.Requests {
		if r.Key != next { // ids are dense: a first appearance is the next number
			continue
		}
		next++
		for c := range p.Copies {
			p.Footprint += int64(p.Weight(p.ID(r.Key, c), r.Size))
		}
	}
	p.Budget = int64(p.Percent / 100 * float64(p.Footprint))
}

// ID numbers the keys of all copies.
func (p *Plan) ID(key uint32, c int) uint64 { return uint64(key)*uint64(p.Copies) + uint64(c) }

// Weight returns the bytes of the key and value of id in a request that says size.
func (p *Plan) Weight(id uint64, size uint32) int { return keyBytes + p.valueSize(id, size) }

// valueSize returns the bytes of the value of id. The trace may say another size
// in every request; drawn ones stay.
func (p *Plan) valueSize(id uint64, size uint32) int {
	switch {
	case p.ValueBytes == 0:
		return max(leastValue, int(float64(size)*p.Stretch))
	case p.Values != Sized:
		return p.ValueBytes
	}
	return vary(p.ValueBytes, load.Mix(id))
}

// updatedSize is valueSize after so many updates, each of which draws a length within half of
// that.
func (p *Plan) updatedSize(id uint64, size, updates uint32) int {
	n := p.valueSize(id, size)
	if updates == 0 {
		return n
	}
	return max(leastValue, vary(n, load.Mix(id^uint64(updates)<<32)))
}

// vary returns a size within half of the mean.
func vary(mean int, random uint64) int {
	half := uint64(mean / 2)
	return mean - int(half) + int(random%(2*half+1))
}

// isUpdate says, by chance, whether the n-th read-through request is an update.
func (p *Plan) isUpdate(n int) bool {
	return p.Writes > 0 && float64(load.Mix(^uint64(n))>>11)/(1<<53) < p.Writes
}
