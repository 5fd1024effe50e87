package views

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	memotable "github.com/ringcache/ringcache/internal/memo"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// countedMemo returns a memo of strings, and a function that returns the lookups so far that have
// found a value by its cache entry, without reading its bytes.
func countedMemo(entries int) (memo *codec.Memoized[string], recalled func() int) {
	memo = codec.Memo(codec.String[string](), entries, 1<<20)
	var hashed atomic.Int64 // also by calls that bind
	memotable.TableOf[string](memo).Hash = func(data []byte) uint64 {
		hashed.Add(1)
		return xxhash.Sum64(data)
	}
	return memo, func() int {
		s := memo.Stats()
		return int(s.Hits+s.Misses) - int(hashed.Load())
	}
}

// memoShapes are caches in which positions come around again, entries are evicted and moved, and
// values change in place.
func memoShapes() (all []ringtest.Shape) {
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		for _, g := range []ringtest.Shape{
			ringtest.Tiny(1, 64, 100), ringtest.Tiny(2, 1024, 10), ringtest.Tiny(1, 4096, 4),
		} {
			g.Policy = p
			all = append(all, ringtest.Narrow(g))
		}
	}
	return all
}

// A view with a memo never returns an older value, whatever happens to an entry.
func TestMemo_RecalledValuesAreCurrent(t *testing.T) {
	for i, g := range memoShapes() {
		t.Run(ringtest.Describe(g), func(t *testing.T) {
			t.Parallel()
			m := newMemoModel(t, g, uint64(i))
			for range 4_000 * ringtest.Rounds() {
				m.step()
			}
			require.Greater(t, m.hits, 10_000)
			if g.ChunkSize > 64 { // else most records cross the end of a chunk
				require.Greater(t, m.recalled(), 2_000, "values were found by their entries")
			}
			s := ringtest.StatsOf(m.cache)
			require.EqualValues(t, m.gets, s.GetCalls)
			require.EqualValues(t, m.gets-m.hits, s.Misses)
			ringtest.CloseCache(t, m.cache)
		})
	}
}

// memoModel is a cache with two views, and the values that their keys had last.
type memoModel struct {
	t        *testing.T
	rnd      interface{ IntN(n int) int }
	cache    *ringcache.Cache
	age      *time.Duration
	views    [2]*ringcache.Typed[uint64, string] // of the whole cache, and of a namespace
	space    *ringcache.Cache
	recalled func() int
	last     [2]map[uint64]memoValue
	version  int

	gets, hits int
}

type memoValue struct {
	text string
	ends time.Duration // 0: never
}

func newMemoModel(t *testing.T, g ringtest.Shape, seed uint64) *memoModel {
	m := &memoModel{t: t, rnd: ringtest.NewRand(seed)}
	m.cache, m.age = ringtest.TimedCache(t, g)
	memo, recalled := countedMemo(64)
	m.recalled = recalled
	m.space = m.cache.Namespace("n")
	m.views[0] = ringcache.NewTyped[uint64](m.cache, memo, ringcache.TypedOptions{Prefix: "p:"})
	m.views[1] = ringcache.NewTyped[uint64](m.space, memo, ringcache.TypedOptions{})
	m.last = [2]map[uint64]memoValue{{}, {}}
	return m
}

// step does what a service does with a cache: mostly reads.
func (m *memoModel) step() {
	in := m.rnd.IntN(2)
	key := uint64(m.rnd.IntN(8) * m.rnd.IntN(8))
	switch n := m.rnd.IntN(2000); {
	case n < 1600:
		for range 1 + m.rnd.IntN(20) {
			m.get(in, key)
		}
	case n < 1900:
		m.set(in, key)
	case n < 1950:
		m.views[in].Del(key)
		delete(m.last[in], key)
	case n < 1990:
		*m.age += time.Duration(m.rnd.IntN(300)) * time.Millisecond
	case n < 1996:
		m.space.Reset()
		clear(m.last[1])
	case n < 1998:
		m.cache.Reset()
		clear(m.last[0])
		clear(m.last[1])
	default:
		for range 100 { // entries move and go
			m.set(0, uint64(1000+m.rnd.IntN(500)))
		}
	}
}

func (m *memoModel) set(in int, key uint64) {
	var v memoValue
	m.version++
	v.text = fmt.Sprintf("%d:%d:%06d:%s", in, key, m.version,
		strings.Repeat("x", []int{0, 0, 1, 5, 40}[m.rnd.IntN(5)]))
	ttl := time.Duration([]int{0, 0, 1, 5}[m.rnd.IntN(4)]) * time.Second
	if ttl > 0 {
		v.ends = *m.age + ttl
	}
	require.NoError(m.t, m.views[in].SetWithTTL(key, v.text, ttl))
	m.last[in][key] = v
}

func (m *memoModel) get(in int, key uint64) {
	var got string
	var ok bool
	if m.rnd.IntN(2) == 0 {
		var err error
		got, ok, err = m.views[in].Get(key)
		require.NoError(m.t, err)
	} else {
		v, err := m.views[in].GetOrLoad(context.Background(), key, absentString)
		if ok = err == nil; ok {
			got = v
		} else {
			require.ErrorIs(m.t, err, ringcache.ErrAbsent)
			m.views[in].Del(key) // the negative entry
		}
	}
	m.gets++
	if !ok {
		return
	}
	m.hits++
	want, there := m.last[in][key]
	require.True(m.t, there, "%d: %q was removed", key, got)
	require.Equal(m.t, want.text, got)
	require.True(m.t, want.ends == 0 || *m.age < want.ends+100*time.Millisecond, "%q has expired", got)
}

func absentString(context.Context, uint64) (string, time.Duration, error) {
	return "", 0, ringcache.ErrAbsent
}

// While a key is written, readers see its versions in order, none older than the last Set that
// returned before the call, and never one of another key. In a small memo, keys take the places of
// others all the time.
func TestMemo_ConcurrentReadersSeeVersionsInOrder(t *testing.T) {
	t.Run("roomy memo", func(t *testing.T) { testReadersOfAMemo(t, 4, 16) })
	t.Run("small memo", func(t *testing.T) { testReadersOfAMemo(t, 6, 4) })
}

func testReadersOfAMemo(t *testing.T, keys uint64, entries int) {
	const readers = 3
	g := ringtest.Narrow(ringtest.Tiny(1, 256, 40))
	c := ringtest.MustCache(t, g)
	memo, recalled := countedMemo(entries)
	v := ringcache.NewTyped[uint64](c, memo, ringcache.TypedOptions{})
	stored := make([]atomic.Int64, keys) // the last version of each key
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range readers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			seen := make([]int, keys)
			for key := uint64(0); !stop.Load(); key = (key + 1) % keys {
				for range 4 {
					least := max(seen[key], int(stored[key].Load()))
					text, ok, err := v.Get(key)
					if !ok || err != nil {
						continue
					}
					var of uint64
					var version int
					_, err = fmt.Sscanf(text, "%d:%d:", &of, &version)
					if !assert.NoError(t, err) || !assert.Equal(t, key, of) ||
						!assert.GreaterOrEqual(t, version, least, "key %d", key) {
						return
					}
					seen[key] = version
				}
			}
		}()
	}
	rnd := ringtest.NewRand(1)
	for version := 1; version < 1000 || recalled() < 1000 && version < 1_000_000; version++ {
		key := uint64(version) % keys
		pad := strings.Repeat("x", []int{3, 3, 3, 20}[rnd.IntN(4)])
		require.NoError(t, v.Set(key, fmt.Sprintf("%d:%07d:%s", key, version, pad)))
		stored[key].Store(int64(version))
		for range 20 { // time to read it
			_, _, err := v.Get(key)
			require.NoError(t, err)
		}
	}
	stop.Store(true)
	wg.Wait()
	require.GreaterOrEqual(t, recalled(), 1000, "values were found by their entries")
	ringtest.CloseCache(t, c)
}

// A value that is found by its entry counts as a read, as in a view without a memo.
func TestMemo_RecallIsARead(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 16))
	memo, recalled := countedMemo(16)
	v := ringcache.NewTyped[uint64](c, memo, ringcache.TypedOptions{})
	require.NoError(t, v.Set(0, "value"))
	for range 2 { // the first decodes it, the second binds it
		_, _, err := v.Get(0)
		require.NoError(t, err)
	}
	freq := func() (n int) {
		for _, e := range ringtest.Contents(t, c) {
			n += e.Freq
		}
		return n
	}
	before, were := freq(), recalled()
	_, ok, err := v.Get(0)
	require.True(t, ok && err == nil)
	require.Equal(t, were+1, recalled())
	require.Equal(t, before+1, freq())
	ringtest.CloseCache(t, c)
}

// One memo serves views of several caches, in which the same key has other values.
func TestMemo_CachesHaveTheirOwnEntries(t *testing.T) {
	memo, recalled := countedMemo(64)
	var views []*ringcache.Typed[uint64, string]
	for range 3 {
		c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 16)) // one secret: the hashes are equal
		views = append(views, ringcache.NewTyped[uint64](c, memo, ringcache.TypedOptions{}))
	}
	for i, v := range views {
		require.NoError(t, v.Set(1, fmt.Sprint("value ", i)))
	}
	for range 300 {
		for i, v := range views {
			for range 3 {
				got, ok, err := v.Get(1)
				require.True(t, ok && err == nil)
				require.Equal(t, fmt.Sprint("value ", i), got)
			}
		}
	}
	require.Greater(t, recalled(), 300)
}

// With RefreshAhead, a value that is found by its entry starts the load when it is due.
func TestMemo_RecalledValuesAreRefreshed(t *testing.T) {
	g := ringtest.Tiny(1, 4096, 16)
	g.TTL, g.RefreshAhead = 10*time.Second, 5*time.Second
	c, age := ringtest.TimedCache(t, g)
	memo, recalled := countedMemo(16)
	v := ringcache.NewTyped[uint64](c, memo, ringcache.TypedOptions{})
	require.NoError(t, v.Set(0, "value"))
	loaded := make(chan struct{})
	get := func() {
		got, err := v.GetOrLoad(context.Background(), 0,
			func(context.Context, uint64) (string, time.Duration, error) {
				defer close(loaded)
				return "value", 0, nil
			})
		require.NoError(t, err)
		require.Equal(t, "value", got)
	}
	for range 10 {
		get()
	}
	require.Positive(t, recalled())
	*age = 6 * time.Second
	get()
	<-loaded
	ringtest.CloseCache(t, c)
}

// sealedCodec embeds a memo, but its encodings are not those of the memo.
type sealedCodec struct{ *codec.Memoized[string] }

func (c sealedCodec) Append(dst []byte, v string) ([]byte, error) {
	return c.Memoized.Append(append(dst, "sealed:"...), v)
}

func (c sealedCodec) Decode(data []byte) (string, error) {
	return c.Memoized.Decode(bytes.TrimPrefix(data, []byte("sealed:")))
}

// A view calls the methods of a codec that embeds a memo, not those of the memo.
func TestMemo_MayBeEmbedded(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 16))
	memo, _ := countedMemo(16)
	v := ringcache.NewTyped[uint64](c, sealedCodec{memo}, ringcache.TypedOptions{})
	require.NoError(t, v.Set(1, "value"))
	for range 4 {
		got, ok, err := v.Get(1)
		require.True(t, ok && err == nil)
		require.Equal(t, "value", got)
		got, err = v.GetOrLoad(context.Background(), 1, absentString)
		require.NoError(t, err)
		require.Equal(t, "value", got)
	}
	require.Positive(t, memo.Stats().Hits)
	ringtest.CloseCache(t, c)
}
