package ringexpvar_test

import (
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringexpvar"
)

const floor = 32 << 20

func small(t testing.TB) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(floor)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

var names atomic.Int64

// freshName returns a name that no test of the process has published, however
// often it runs.
func freshName(t testing.TB) string {
	return fmt.Sprintf("%s %d", t.Name(), names.Add(1))
}

// served returns what the handler of package expvar shows.
func served(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	rec := httptest.NewRecorder()
	expvar.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/debug/vars", nil))
	require.Equal(t, http.StatusOK, rec.Code)
	var vars map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &vars))
	return vars
}

func decode(t testing.TB, text string) (s ringcache.Stats) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	return s
}

func TestPublish_IsServed(t *testing.T) {
	c, name := small(t), freshName(t)
	v, err := ringexpvar.Publish(name, c)
	require.NoError(t, err)
	require.Same(t, v, expvar.Get(name))

	for i := range 10 {
		require.NoError(t, c.Set([]byte{byte(i)}, make([]byte, 100)))
		c.Has([]byte{byte(2 * i)})
		var want ringcache.Stats
		c.UpdateStats(&want)
		got := served(t)[name]
		require.Equal(t, want, decode(t, string(got)))

		var fields map[string]any
		require.NoError(t, json.Unmarshal(got, &fields))
		require.Len(t, fields, reflect.TypeFor[ringcache.Stats]().NumField())
		require.EqualValues(t, i+1, fields["SetCalls"])
		require.EqualValues(t, floor, fields["MaxBytesSize"])
		require.Len(t, fields["Loads"], reflect.TypeFor[ringcache.LoadStats]().NumField())
	}
}

func TestPublish_NameTaken(t *testing.T) {
	c, name := small(t), freshName(t)
	first, err := ringexpvar.Publish(name, c)
	require.NoError(t, err)

	second, err := ringexpvar.Publish(name, small(t))
	require.ErrorIs(t, err, ringexpvar.ErrNameTaken)
	require.EqualError(t, err, fmt.Sprintf("ringexpvar: publish stats as %q: name is taken", name))
	require.Nil(t, second)
	require.NoError(t, c.Set(nil, nil))
	require.Same(t, first, expvar.Get(name))
	require.EqualValues(t, 1, decode(t, first.String()).EntriesCount,
		"the first shows its own cache still")

	_, err = ringexpvar.Publish("memstats", c) // of package expvar itself
	require.ErrorIs(t, err, ringexpvar.ErrNameTaken)
}

func TestPublish_OneOfManyWins(t *testing.T) {
	c := small(t)
	for range 100 {
		name := freshName(t)
		var wins, taken atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				<-start
				switch _, err := ringexpvar.Publish(name, c); {
				case err == nil:
					wins.Add(1)
				case errors.Is(err, ringexpvar.ErrNameTaken):
					taken.Add(1)
				}
			}()
		}
		close(start)
		wg.Wait()
		require.Equal(t, [2]int64{1, 3}, [2]int64{wins.Load(), taken.Load()})
	}
}

func TestVar_NoCache(t *testing.T) {
	var zero ringexpvar.Var
	require.Equal(t, "null", zero.String())
	zero.Set(small(t))
	require.NotEqual(t, "null", zero.String())
}

func TestVar_NilCachePanics(t *testing.T) {
	const want = "ringexpvar: set cache: cache is nil"
	name := freshName(t)
	require.PanicsWithValue(t, want, func() { ringexpvar.New(nil) })
	require.PanicsWithValue(t, want, func() { _, _ = ringexpvar.Publish(name, nil) })
	require.Nil(t, expvar.Get(name), "nothing is published")
	v := ringexpvar.New(small(t))
	require.PanicsWithValue(t, want, func() { v.Set(nil) })
	require.NotEqual(t, "null", v.String(), "it shows the cache that it had")
}

func TestVar_Set(t *testing.T) {
	first, second := small(t), small(t)
	require.NoError(t, first.Set([]byte("a"), nil))
	require.NoError(t, second.Set([]byte("a"), nil))
	require.NoError(t, second.Set([]byte("b"), nil))
	v := ringexpvar.New(first)
	require.Equal(t, uint64(1), decode(t, v.String()).EntriesCount)
	v.Set(second)
	require.Equal(t, uint64(2), decode(t, v.String()).EntriesCount)
}

func TestVar_Closed(t *testing.T) {
	c := ringcache.New(floor)
	v := ringexpvar.New(c)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	require.NotZero(t, decode(t, v.String()).ReservedBytes)
	require.NoError(t, c.Close())
	require.Equal(t, ringcache.Stats{
		SetCalls: 1, MaxBytesSize: floor, EffectiveMaxBytes: floor,
	}, decode(t, v.String()))
	runtime.KeepAlive(c)
}

// A variable can never be taken back, so it must not be what keeps a cache.
func TestVar_LetsTheCacheGo(t *testing.T) {
	v := new(ringexpvar.Var)
	func() {
		c := ringcache.New(floor)
		v.Set(c)
		require.NoError(t, c.Set([]byte("k"), []byte("v")))
		runtime.GC()
		require.True(t, strings.HasPrefix(v.String(), "{"), "collected while it was in use")
		runtime.KeepAlive(c)
	}()
	for range 100 {
		if runtime.GC(); v.String() == "null" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Fail(t, "the cache is still there after 100 collections")
}

func TestVar_Concurrent(t *testing.T) {
	a, b := small(t), small(t)
	v := ringexpvar.New(a)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range 100 {
				switch i {
				case 0:
					v.Set([]*ringcache.Cache{a, b}[n%2])
				case 1:
					_ = a.Set([]byte{byte(n)}, []byte("v"))
				default:
					var s *ringcache.Stats
					assert.NoError(t, json.Unmarshal([]byte(v.String()), &s))
				}
			}
		}()
	}
	wg.Wait()
}

// For a namespace, only the six figures that it has are shown, and no zeros for the others.
func TestNew_Namespace(t *testing.T) {
	c := ringcache.New(32 << 20)
	defer c.Close()
	n := c.Namespace("n")
	require.NoError(t, n.Set([]byte("k"), []byte("v")))
	var got map[string]uint64
	require.NoError(t, json.Unmarshal([]byte(ringexpvar.New(n).String()), &got))
	require.Len(t, got, 6)
	require.EqualValues(t, 1, got["EntriesCount"])
}
