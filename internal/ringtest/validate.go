package ringtest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Validate checks the invariants of docs/design.md: those of each bucket (check.go), and those
// of the whole cache. It takes all locks that it needs, and names the invariants that do not hold.
func Validate(c *ringcache.Cache) error {
	arena := Arena(c)
	arena.Lock()
	defer arena.Unlock()
	var errs []error
	large, held := map[*atomic.Int64]int64{}, int64(0)
	for i := range Shared(c).Buckets + store.LargeBuckets {
		b := Nth(c, i)
		b.Mu.Lock()
		if n := b.Seq.Load(); n%2 != 0 && !b.Closed {
			errs = append(errs, fmt.Errorf("I13: bucket %d has sequence %d while nobody writes", i, n))
		}
		if err := checkBucket(b.Store, large); err != nil {
			errs = append(errs, fmt.Errorf("bucket %d: %w", i, err))
		}
		if b.Large {
			held += int64(b.Sizes().Held)
		}
		b.Mu.Unlock()
	}
	for i := range Shared(c).LargeKeys {
		count := &Shared(c).LargeKeys[i]
		if n := count.Load(); n != large[count] {
			errs = append(errs, fmt.Errorf("I8: count %d is %x, of %x large keys", i, n, large[count]))
		}
	}
	if counted := Shared(c).Arrivals.Held.Load(); held != counted {
		errs = append(errs, fmt.Errorf("large buckets hold %d bytes, counted are %d", held, counted))
	}
	if err := Shared(c).Pool.Validate(); err != nil && !*testhook.PartsOf(c).Unfinished {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
