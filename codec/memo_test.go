package codec_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// order is a value that takes long to decode.
type order struct {
	ID    uint64
	Buyer string
	Items []string
	Notes map[string]string
}

// newOrder returns an order whose encoding as JSON has about 1 KB.
func newOrder(id uint64) order {
	o := order{ID: id, Buyer: fmt.Sprint("buyer ", id), Notes: map[string]string{"n": "note"}}
	for i := range 46 {
		o.Items = append(o.Items, fmt.Sprintf("item %d of order %d", i, id))
	}
	return o
}

func encode[V any](t *testing.T, c ringcache.Codec[V], v V) []byte {
	t.Helper()
	data, err := c.Append(nil, v)
	require.NoError(t, err)
	return data
}

// counted is a codec of strings that counts how many it has decoded.
func counted(decoded *int) codec.Codec[string] {
	return codec.Func(codec.String[string]().Append, func(data []byte) (string, error) {
		*decoded++
		return string(data), nil
	})
}

func mustDecode[V any](t *testing.T, c ringcache.Codec[V], data string) V {
	t.Helper()
	v, err := c.Decode([]byte(data))
	require.NoError(t, err)
	return v
}

func TestMemo_DecodesOnce(t *testing.T) {
	decoded := 0
	memo := codec.Memo(counted(&decoded), 100, 1<<20)
	for range 3 {
		for _, s := range []string{"", "a", "b"} {
			require.Equal(t, s, mustDecode(t, memo, s))
		}
	}
	require.Equal(t, 3, decoded)
	require.Equal(t, codec.MemoStats{Hits: 6, Misses: 3, Entries: 3, Bytes: 2}, memo.Stats())
}

// A hit returns the same value to all callers, and is found by its bytes, not by their address.
func TestMemo_SharesValues(t *testing.T) {
	memo := codec.Memo(codec.JSON[*order](), 100, 1<<20)
	want := newOrder(7)
	data := encode(t, memo, &want)
	first, err := memo.Decode(data)
	require.NoError(t, err)
	require.Equal(t, &want, first)
	clear(data[copy(data, encode(t, memo, &order{})):]) // the buffer is used again
	second, err := memo.Decode(encode(t, memo, &want))
	require.NoError(t, err)
	require.Same(t, first, second)
	require.EqualValues(t, 1, memo.Stats().Hits)
}

func TestMemo_EncodingRemembersNothing(t *testing.T) {
	memo := codec.Memo(codec.JSON[map[string]int](), 100, 1<<20)
	stored := map[string]int{"a": 1}
	data := encode(t, memo, stored)
	stored["a"] = 2
	v, err := memo.Decode(data)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1}, v)
	require.EqualValues(t, 1, memo.Stats().Misses)
}

// Even if many hashes are equal, only equal bytes are a hit.
func TestMemo_OneBitIsAnotherValue(t *testing.T) {
	for name, hash := range map[string]func([]byte) uint64{
		"hash of the library": nil,
		"all hashes equal":    func([]byte) uint64 { return 0 },
		"hash of the length":  func(data []byte) uint64 { return uint64(len(data)) << 60 },
	} {
		memo := codec.Memo(codec.Bytes[[]byte](), 16, 1<<20)
		if hash != nil {
			memo.SetHash(hash)
		}
		data := []byte(strings.Repeat("value ", 10))
		hits := uint64(0)
		for bit := range 8 * len(data) {
			data[bit/8] ^= 1 << (bit % 8)
			for range 3 {
				v, err := memo.Decode(data)
				require.NoError(t, err)
				require.Equal(t, data, v, name)
			}
			data[bit/8] ^= 1 << (bit % 8)
			require.Greater(t, memo.Stats().Hits, hits, "the fast path was taken: %s", name)
			hits = memo.Stats().Hits
		}
		require.LessOrEqual(t, memo.Stats().Entries, uint64(16))
	}
}

func TestMemo_ErrorsAreNotRemembered(t *testing.T) {
	calls, failure := 0, errors.New("not today")
	memo := codec.Memo(codec.Func(codec.String[string]().Append,
		func(data []byte) (string, error) {
			if calls++; calls <= 2 {
				return "broken", failure
			}
			return string(data), nil
		}), 100, 1<<20)
	for range 2 {
		v, err := memo.Decode([]byte("text"))
		require.ErrorIs(t, err, failure)
		require.Equal(t, "broken", v, "as the codec returned it")
		require.Zero(t, memo.Stats().Entries)
	}
	require.Equal(t, "text", mustDecode(t, memo, "text"))
	require.Equal(t, "text", mustDecode(t, memo, "text"))
	require.Equal(t, codec.MemoStats{Hits: 1, Misses: 3, Entries: 1, Bytes: 4}, memo.Stats())
}

// A codec may use the bytes that it decodes as scratch space.
func TestMemo_CodecMayChangeTheBytes(t *testing.T) {
	memo := codec.Memo(codec.Func(codec.String[string]().Append,
		func(data []byte) (string, error) {
			v := strings.ToUpper(string(data))
			clear(data)
			return v, nil
		}), 100, 1<<20)
	require.Equal(t, "TEXT", mustDecode(t, memo, "text"))
	require.Equal(t, "TEXT", mustDecode(t, memo, "text"))
	require.Equal(t, "\x00\x00", mustDecode(t, memo, "\x00\x00"))
	require.EqualValues(t, 1, memo.Stats().Hits)
}

// A flood of values that are decoded once or twice exceeds neither bound at any moment.
func TestMemo_StaysWithinItsBounds(t *testing.T) {
	for name, test := range map[string]struct{ entries, bytes int }{
		"one entry": {1, 1 << 20}, "few entries": {41, 1 << 20},
		"few bytes": {1000, 3000}, "fewer bytes": {1000, 1000}, "both": {100, 10_000},
	} {
		memo := codec.Memo(codec.String[string](), test.entries, test.bytes)
		rnd := rand.New(rand.NewPCG(1, 2))
		var most codec.MemoStats
		for range 20_000 {
			s := strings.Repeat("x", rnd.IntN(200)) + fmt.Sprint(rnd.IntN(3000))
			require.Equal(t, s, mustDecode(t, memo, s))
			stats := memo.Stats()
			most.Entries = max(most.Entries, stats.Entries)
			most.Bytes = max(most.Bytes, stats.Bytes)
		}
		require.LessOrEqual(t, most.Entries, uint64(test.entries), name)
		require.LessOrEqual(t, most.Bytes, uint64(test.bytes), name)
		full := most.Entries == uint64(test.entries) || most.Bytes > uint64(test.bytes)*9/10
		require.True(t, full, "%s: it does not waste its room: %+v", name, most)
	}
}

// The memory of a memo without values is in proportion to its entries, as its documentation says.
func TestMemo_TakesMemoryInProportion(t *testing.T) {
	for _, n := range []int{1, 1000, 100_000} {
		took := math.MaxInt
		for range 10 { // other goroutines may allocate meanwhile
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			memo := codec.Memo(codec.String[string](), n, 1<<30)
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(memo)
			took = min(took, int(after.TotalAlloc-before.TotalAlloc))
		}
		require.Less(t, took, 91*n+(12<<10), "%d entries, with what is rounded up", n)
	}
}

// A value of more than 1/16 of the bytes would evict many others.
func TestMemo_LargeValuesAreNotRemembered(t *testing.T) {
	decoded := 0
	memo := codec.Memo(counted(&decoded), 100, 1600)
	for range 3 {
		mustDecode(t, memo, strings.Repeat("l", 101))
	}
	require.Equal(t, 3, decoded)
	for range 3 {
		mustDecode(t, memo, strings.Repeat("s", 100))
	}
	require.Equal(t, 4, decoded)
	require.EqualValues(t, 100, memo.Stats().Bytes)
}

// Values that are read often stay while others are read once.
func TestMemo_KeepsWhatIsReadOften(t *testing.T) {
	for name, maxBytes := range map[string]int{"entries": 1 << 20, "bytes": 5000} {
		decoded := 0
		memo := codec.Memo(counted(&decoded), 1000, maxBytes)
		for i := range 50_000 {
			mustDecode(t, memo, fmt.Sprintf("once %05d", i))
			mustDecode(t, memo, fmt.Sprintf("often %03d", i%100))
		}
		often := decoded - 50_000
		require.Less(t, often, 1000, "%s: decoded again, of 50,000 reads", name)
	}
}

// A memo of n entries serves n values that are read over and over: the first ones at once, others,
// which have to replace them, after some rounds.
func TestMemo_FindsAsManyValuesAsItHasEntries(t *testing.T) {
	const n = 3000
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func(i int) int{
		"in turn": func(i int) int { return i % n }, "at random": func(int) int { return rnd.IntN(n) },
	} {
		decoded := 0
		memo := codec.Memo(counted(&decoded), n, 1<<20)
		for set, rounds := range []int{5, 20} {
			read := func(times int) {
				for i := range times * n {
					mustDecode(t, memo, fmt.Sprintf("set %d: %d", set, next(i)))
				}
			}
			read(rounds)
			decoded = 0
			read(5)
			require.Less(t, decoded, 5*n/100, "%s, set %d: one of 100", name, set)
		}
		require.LessOrEqual(t, memo.Stats().Entries, uint64(n), name)
	}
}

// Loops that are longer than the memo still find part of it.
func TestMemo_LongLoopsFindSomething(t *testing.T) {
	const n = 3000
	for length, most := range map[int]float64{n * 5 / 4: 0.4, 2 * n: 0.65} {
		decoded := 0
		memo := codec.Memo(counted(&decoded), n, 1<<20)
		for i := range 15 * length {
			if i == 10*length {
				decoded = 0
			}
			mustDecode(t, memo, fmt.Sprint("value ", i%length))
		}
		require.Less(t, float64(decoded)/float64(5*length), most, "%d values", length)
	}
}

// A value that was read often and no longer is gets evicted.
func TestMemo_FollowsTheLoad(t *testing.T) {
	decoded := 0
	memo := codec.Memo(counted(&decoded), 400, 1<<20)
	for phase := range 5 {
		for i := range 10_000 {
			mustDecode(t, memo, fmt.Sprintf("phase %d: %d", phase, i%100))
		}
	}
	require.Less(t, decoded, 4000, "of 50,000 reads")
}

// All goroutines get the value that the plain codec would return. With the race detector, this also
// shows that entries are not modified while they are read.
func TestMemo_AgreesWithItsCodec(t *testing.T) {
	for name, bounds := range map[string][2]int{
		"roomy": {10_000, 64 << 20}, "entries": {64, 64 << 20}, "bytes": {10_000, 200_000},
	} {
		plain := codec.JSON[order]()
		memo := codec.Memo(plain, bounds[0], bounds[1])
		memo.SetHash(func(data []byte) uint64 { // poor: many values share sets and tags
			return uint64(data[6])<<61 | uint64(len(data)%7)
		})
		encoded, want := make([][]byte, 300), make([]order, 300)
		for i := range encoded {
			want[i] = newOrder(uint64(i))
			encoded[i] = encode(t, plain, want[i])
		}
		var group sync.WaitGroup
		for seed := range uint64(4) {
			group.Add(1)
			go func() {
				defer group.Done()
				rnd := rand.New(rand.NewPCG(seed, 0))
				var buf []byte
				for range 500 {
					i := min(rnd.IntN(300), rnd.IntN(300), rnd.IntN(300))
					buf = append(buf[:0], encoded[i]...)
					got, err := memo.Decode(buf)
					if !assert.NoError(t, err) || !assert.Equal(t, want[i], got) {
						return
					}
				}
			}()
		}
		group.Wait()
		stats := memo.Stats()
		require.EqualValues(t, 4*500, stats.Hits+stats.Misses, name)
		require.NotZero(t, stats.Hits, name)
		require.LessOrEqual(t, stats.Bytes, uint64(bounds[1]), name)
	}
}

// A view with a memo does not allocate on a hit, for any of the ways to read.
func TestMemo_HitsOfAViewDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they are given")
	}
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	memo := codec.Memo(codec.JSON[order](), 1000, 1<<20)
	orders := ringcache.NewTyped[uint64](cache, memo, ringcache.TypedOptions{})
	want := newOrder(1)
	require.InDelta(t, 1024, len(encode(t, memo, want)), 100)
	require.NoError(t, orders.Set(1, want))
	got, ok, err := orders.Get(1)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, got)

	before, ctx := memo.Stats(), t.Context()
	load := func(context.Context, uint64) (order, time.Duration, error) {
		return order{}, 0, errors.New("not missing")
	}
	keys, vals, found := []uint64{1, 1}, make([]order, 2), make([]bool, 2)
	for name, read := range map[string]func(){
		"Get":       func() { got, ok, err = orders.Get(1) },
		"Peek":      func() { got, ok, err = orders.Peek(1) },
		"GetOrLoad": func() { got, err = orders.GetOrLoad(ctx, 1, load) },
		"GetBatch":  func() { _, err = orders.GetBatch(keys, vals, found); got = vals[1] },
	} {
		got = order{}
		assert.Zero(t, testing.AllocsPerRun(200, read), name)
		assert.True(t, err == nil && ok, name)
		assert.Equal(t, want, got, name)
	}
	after := memo.Stats()
	require.Equal(t, before.Misses, after.Misses, "each of them was a hit")
	require.GreaterOrEqual(t, after.Hits-before.Hits, uint64(4*200))
}

// A view with a memo returns the value that was set last, and a view without one agrees.
func TestMemo_ViewsSeeWhatWasSetLast(t *testing.T) {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	plain := ringcache.NewTyped[uint64](cache, codec.JSON[order](), ringcache.TypedOptions{})
	memo := codec.Memo(codec.JSON[order](), 1000, 1<<20)
	orders := ringcache.NewTyped[uint64](cache, memo, ringcache.TypedOptions{})
	for i := range uint64(100) {
		require.NoError(t, []*ringcache.Typed[uint64, order]{plain, orders}[i%2].Set(1, newOrder(i/4)))
		for range 2 {
			want, _, err := plain.Get(1)
			require.NoError(t, err)
			got, ok, err := orders.Get(1)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, want, got)
		}
	}
	require.EqualValues(t, 25, memo.Stats().Misses, "each value is decoded once")
}

func TestMemo_RefusesWhatCannotBeMeant(t *testing.T) {
	const bounds = "codec: make memo: maxEntries is below 1, or maxBytes below maxEntries"
	text := codec.String[string]()
	require.PanicsWithValue(t, bounds, func() { codec.Memo(text, 0, 100) })
	require.PanicsWithValue(t, bounds, func() { codec.Memo(text, 1<<20, 100) })
	require.PanicsWithValue(t, "codec: make memo: codec is nil",
		func() { codec.Memo[string](nil, 1, 1) })
}
