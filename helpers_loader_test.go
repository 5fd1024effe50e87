package ringcache

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errDown = errors.New("down")

func loaderCache(t testing.TB) *Cache { return mustCache(t, tiny(4, 1024, 16)) }

// isNegative reports whether a load has found that the key has no value.
func (c *Cache) isNegative(k []byte) bool {
	_, _, got := c.lookup(nil, k, c.shared.hash(k), 0)
	return got == negative
}

// waiting returns how many callers wait for the load of the key, or -1 if none
// may be joined.
func (c *Cache) waiting(k []byte) int {
	h := c.shared.hash(k)
	b := c.bucket(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.calls.Find(k, h); f != nil {
		return f.Waiters
	}
	return -1
}

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
