package ringcache

import (
	"fmt"
	"time"
)

// Bounds on Options.MaxBytes.
const (
	minMaxBytes = 32 << 20 // 512 buckets of 64 KB
	maxMaxBytes = 1 << 42  // 512 buckets of 8 GB, half of what positions reach (I3)
)

// Options are the settings of a cache. The zero value of each field but
// MaxBytes means its default.
type Options struct {
	// MaxBytes bounds all off-heap memory of the cache, records and index
	// together, in bytes. Below 32 MB it is taken as 32 MB; the most is 4 TB.
	// There is no default: NewWithOptions reports an error for 0 or less.
	MaxBytes int

	// Policy is the rule by which entries are dropped when the cache is full:
	// PolicyS3FIFO, the default, or PolicyFIFO.
	Policy Policy

	// TTL is how long entries live that are set without a time to live of their
	// own, in steps of 100 ms (see [Cache.SetWithTTL]). 0, the default, means
	// that they do not expire; less than 0 is an error.
	TTL time.Duration

	// RefreshAhead is how long before its expiry an entry is due: a hit of
	// [Cache.GetOrLoad] on one that is begins a load of it, so that callers need
	// not wait for one later. 0, the default, means that nothing is loaded
	// ahead; less than 0, and TTL or more where that is not 0, is an error. It
	// should be a small part of the time to live of what is loaded: an entry
	// that lives no longer than RefreshAhead is due at every hit. A hit of
	// GetOrLoad looks the key up twice then.
	RefreshAhead time.Duration

	// OnEvict, if not nil, is called for each entry that leaves the cache, once,
	// with the reason. It is not called for those that are there when the cache
	// is closed.
	//
	// It is called by the goroutine whose call made the entry leave, before that
	// call returns and after it has given up all locks: it may take its time and
	// call methods of the same cache (but not Resize), and meanwhile k may have
	// been set again.
	// k and v are copies that it may keep. A panic reaches the caller; the cache
	// is sound then, but other entries that left in the same call are not told.
	// The copies are what it costs: each entry that leaves is allocated once.
	OnEvict func(k, v []byte, reason Reason)

	// HugePages asks the operating system to back the cache with large pages
	// (on Linux, by MADV_HUGEPAGE, where transparent huge pages are set to
	// madvise or always; elsewhere it does nothing). Reads and overwrites
	// spread over hundreds of megabytes become 8 to 15 % faster. The price is
	// paid while the cache fills: memory comes in steps of 2 MB, each of which
	// keeps one Set waiting for 0.1 to several milliseconds.
	HugePages bool

	// ExpectedEntries is about how many entries the cache is going to hold, and
	// ExpectedValueSize about how many bytes their values have; 0 says that it is
	// not known. They are hints: no result depends on them, only how soon the
	// cache runs at its best speed. With the first, the index of a bucket has its
	// final size from the bucket's first Set on, instead of growing to it in
	// steps, and costs next to nothing before; at most, it has the size for as
	// many entries as fit (values taken to have about 50 bytes if nothing is said
	// of them). A number too high takes memory from the entries; one too low costs
	// nothing.
	ExpectedEntries   int
	ExpectedValueSize int
}

// validate returns an error that names the field and the bound.
func (o Options) validate() error {
	if o.MaxBytes <= 0 {
		return fmt.Errorf("ringcache: check options: MaxBytes is %d, must be above 0: %w", o.MaxBytes, ErrInvalidOptions)
	}
	if int64(o.MaxBytes) > maxMaxBytes {
		return fmt.Errorf("ringcache: check options: MaxBytes is %d, must be at most %d: %w", o.MaxBytes, int64(maxMaxBytes), ErrInvalidOptions)
	}
	if o.Policy > PolicyFIFO {
		return fmt.Errorf("ringcache: check options: Policy is %d, must be at most %d: %w", o.Policy, PolicyFIFO, ErrInvalidOptions)
	}
	if o.TTL < 0 {
		return fmt.Errorf("ringcache: check options: TTL is %v, must be at least 0: %w", o.TTL, ErrInvalidOptions)
	}
	if o.ExpectedEntries < 0 {
		return fmt.Errorf("ringcache: check options: ExpectedEntries is %d, must be at least 0: %w", o.ExpectedEntries, ErrInvalidOptions)
	}
	if o.ExpectedValueSize < 0 {
		return fmt.Errorf("ringcache: check options: ExpectedValueSize is %d, must be at least 0: %w", o.ExpectedValueSize, ErrInvalidOptions)
	}
	if o.RefreshAhead < 0 {
		return fmt.Errorf("ringcache: check options: RefreshAhead is %v, must be at least 0: %w", o.RefreshAhead, ErrInvalidOptions)
	}
	if o.TTL > 0 && o.RefreshAhead >= o.TTL {
		return fmt.Errorf("ringcache: check options: RefreshAhead is %v, must be below TTL of %v: %w", o.RefreshAhead, o.TTL, ErrInvalidOptions)
	}
	return nil
}
