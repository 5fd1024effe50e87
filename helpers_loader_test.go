package ringcache

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// errDown is the error of loads that fail.
var errDown = errors.New("down")

// exitedText is in the error of a load that ends its goroutine.
const exitedText = "the load called runtime.Goexit"

// loaderCache returns a small cache.
func loaderCache(t testing.TB) *Cache { return mustCache(t, tiny(4, 1024, 16)) }

// isNegative reports whether a load has found that the key has no value.
func (c *Cache) isNegative(k []byte) bool {
	h := c.shared.Hash(k)
	for _, b := range []*bucket{c.bucket(h), c.largeBucket(h)} {
		b.mu.Lock()
		var f store.Found
		found := b.Find(&f, k, h)
		b.mu.Unlock()
		if found {
			return f.Kind == record.Negative && !c.shared.Expired(f.Expiry)
		}
	}
	return false
}

// waiting returns how many callers wait for the load of the key, or -1 if none
// may be joined.
func (c *Cache) waiting(k []byte) int {
	return testhook.Waiting(c, k)
}

// awaitWaiting returns when n callers wait for the load of a key.
func awaitWaiting(t testing.TB, c *Cache, k []byte, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); c.waiting(k) != n; runtime.Gosched() {
		if time.Now().After(end) {
			require.Equal(t, n, c.waiting(k), "callers that wait for the load of %q", k)
		}
	}
}

// neverLoads is the load of a call that must not need one.
func neverLoads(context.Context, []byte) ([]byte, time.Duration, error) {
	panic("it was to find the key")
}

// absentIf returns ErrAbsent or nil.
func absentIf(absent bool) error {
	if absent {
		return ErrAbsent
	}
	return nil
}

// reply is what a GetOrLoad has come to.
type reply struct {
	v        []byte
	err      error
	panicked any
}

// ask calls GetOrLoad in another goroutine.
func ask(ctx context.Context, c *Cache, k []byte, load loadFunc) <-chan reply {
	ch := make(chan reply, 1)
	go func() {
		var r reply
		defer func() {
			r.panicked = recover()
			ch <- r
		}()
		r.v, r.err = c.GetOrLoad(ctx, nil, k, load)
	}()
	return ch
}
