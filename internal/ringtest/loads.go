package ringtest

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// ErrDown is the error of loads that fail.
var ErrDown = errors.New("down")

// ExitedText is in the error of a load that ends its goroutine.
const ExitedText = "the load called runtime.Goexit"

// LoaderCache returns a small cache.
func LoaderCache(t testing.TB) *ringcache.Cache { return MustCache(t, Tiny(4, 1024, 16)) }

// IsNegative reports whether a load has found that the key has no value.
func IsNegative(c *ringcache.Cache, k []byte) bool {
	k, h := KeyOf(c, k)
	for _, b := range []Bucket{BucketOf(c, h), LargeBucketOf(c, h)} {
		b.Mu.Lock()
		var f store.Found
		found := b.Find(&f, k, h)
		b.Mu.Unlock()
		if found {
			return f.Kind.Base() == record.Negative && !Shared(c).Expired(f.Expiry)
		}
	}
	return false
}

// Waiting returns how many callers wait for the load of the key, or -1 if none
// may be joined.
func Waiting(c *ringcache.Cache, k []byte) int {
	return testhook.PartsOf(c).Waiting(k)
}

// AwaitWaiting returns when n callers wait for the load of a key.
func AwaitWaiting(t testing.TB, c *ringcache.Cache, k []byte, n int) {
	t.Helper()
	for end := time.Now().Add(HangLimit); Waiting(c, k) != n; runtime.Gosched() {
		if time.Now().After(end) {
			require.Equal(t, n, Waiting(c, k), "callers that wait for the load of %q", k)
		}
	}
}

// NeverLoads is the load of a call that must not need one.
func NeverLoads(context.Context, []byte) ([]byte, time.Duration, error) {
	panic("it was to find the key")
}

// AbsentIf returns ErrAbsent or nil.
func AbsentIf(absent bool) error {
	if absent {
		return ringcache.ErrAbsent
	}
	return nil
}

// Reply is what a GetOrLoad has come to.
type Reply struct {
	V        []byte
	Err      error
	Panicked any
}

// Ask calls GetOrLoad in another goroutine.
func Ask(ctx context.Context, c *ringcache.Cache, k []byte, load LoadFunc) <-chan Reply {
	ch := make(chan Reply, 1)
	go func() {
		var r Reply
		defer func() {
			r.Panicked = recover()
			ch <- r
		}()
		r.V, r.Err = c.GetOrLoad(ctx, nil, k, load)
	}()
	return ch
}

// FindsNothing is the load of a value that is nowhere.
func FindsNothing(context.Context, []byte) ([]byte, time.Duration, error) {
	return nil, 0, ringcache.ErrAbsent
}

// Echo is a load that finds "of " and the key, and notes each call's keys.
type Echo struct {
	mu    sync.Mutex
	calls []string
}

// Load returns values that name their keys.
func (e *Echo) Load(_ context.Context, keys [][]byte) ([]Loaded, error) {
	e.mu.Lock()
	e.calls = append(e.calls, string(bytes.Join(keys, []byte(" "))))
	e.mu.Unlock()
	all := make([]Loaded, len(keys))
	for i, k := range keys {
		all[i].Value = append([]byte("of "), k...)
	}
	return all, nil
}

// Asked returns the keys of each call so far.
func (e *Echo) Asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// Fails is a load that fails.
func Fails(context.Context, []byte) ([]byte, time.Duration, error) { return nil, 0, ErrDown }

// Gives returns a load of a value, and the count of its calls.
func Gives(v string) (LoadFunc, *atomic.Int64) {
	n := new(atomic.Int64)
	return func(context.Context, []byte) ([]byte, time.Duration, error) {
		n.Add(1)
		return []byte(v), 0, nil
	}, n
}

// Naturals is a codec of numbers that are not below 0.
var Naturals = codec.Func(
	func(dst []byte, n int) ([]byte, error) {
		if n < 0 {
			return dst, errors.New("below 0")
		}
		return strconv.AppendInt(dst, int64(n), 10), nil
	},
	func(data []byte) (int, error) { return strconv.Atoi(string(data)) })

// Filler returns n bytes that are not all the same.
func Filler(n int) []byte { return Stamp{ID: 1, Size: n}.Value(nil) }
