package views

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// point is a struct of fixed size with a codec by hand.
type point struct{ X, Y float64 }

func appendPoint(dst []byte, p point) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.X))
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.Y)), nil
}

func decodePoint(data []byte) (point, error) {
	if len(data) != 16 {
		// With a value, as careless codecs return one.
		return point{1, 1}, fmt.Errorf("point of %d bytes: %w", len(data), io.ErrUnexpectedEOF)
	}
	return point{
		X: math.Float64frombits(binary.LittleEndian.Uint64(data)),
		Y: math.Float64frombits(binary.LittleEndian.Uint64(data[8:])),
	}, nil
}

func pointCodec() ringcache.Codec[point] { return codec.Func(appendPoint, decodePoint) }

// Named types must do as well as the built-in ones.
type (
	name   string
	digest []byte
	age    int8
	port   uint16
	userID uint64
)

// texts returns a view with strings as values.
func texts[K ringcache.Key](c *ringcache.Cache, prefix string) *ringcache.Typed[K, string] {
	return ringcache.NewTyped[K](c, codec.String[string](),
		ringcache.TypedOptions{Prefix: prefix})
}

// testKey sets a value under a key and looks for it under the bytes that the
// documentation says the key has.
func testKey[K ringcache.Key](t *testing.T, key K, want string) {
	t.Helper()
	for _, prefix := range []string{"", "p:", strings.Repeat("long prefix ", 20)} {
		t.Run(fmt.Sprintf("%T/%v/prefix=%d", key, key, len(prefix)), func(t *testing.T) {
			c := ringtest.Small(t)
			view := texts[K](c, prefix)
			require.False(t, view.Has(key))
			require.False(t, view.Del(key))

			require.NoError(t, view.Set(key, "value"))
			require.Equal(t, "value", string(c.Get(nil, []byte(prefix+want))))
			require.Equal(t, 1, c.Len())
			require.True(t, view.Has(key))
			v, ok, err := view.Get(key)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, "value", v)

			require.True(t, view.Del(key))
			require.Zero(t, c.Len())
		})
	}
}

func TestTyped_Keys(t *testing.T) {
	testKey(t, "", "")
	testKey(t, "key", "key")
	testKey(t, strings.Repeat("k", 300), strings.Repeat("k", 300))
	testKey(t, name("key"), "key")
	testKey(t, []byte(nil), "")
	testKey(t, []byte("key"), "key")
	testKey(t, digest("\x00\xff"), "\x00\xff")

	testKey(t, int8(-2), "\xfe")
	testKey(t, age(127), "\x7f")
	testKey(t, int16(-2), "\xff\xfe")
	testKey(t, int32(0x01020304), "\x01\x02\x03\x04")
	testKey(t, int64(-2), "\xff\xff\xff\xff\xff\xff\xff\xfe")
	testKey(t, int64(math.MinInt64), "\x80\x00\x00\x00\x00\x00\x00\x00")
	testKey(t, uint8(0xfe), "\xfe")
	testKey(t, port(0x0102), "\x01\x02")
	testKey(t, uint32(math.MaxUint32), "\xff\xff\xff\xff")
	testKey(t, uint64(1<<63+2), "\x80\x00\x00\x00\x00\x00\x00\x02")
	testKey(t, userID(0x0102030405060708), "\x01\x02\x03\x04\x05\x06\x07\x08")
	testKey(t, 'x', "\x00\x00\x00x") // a rune is an int32

	// These have as many bits as the platform, and always 8 bytes.
	testKey(t, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")
	testKey(t, -2, "\xff\xff\xff\xff\xff\xff\xff\xfe")
	testKey(t, time.Month(7), "\x00\x00\x00\x00\x00\x00\x00\x07")
	testKey(t, uint(0xfffffffe), "\x00\x00\x00\x00\xff\xff\xff\xfe")
	testKey(t, uintptr(7), "\x00\x00\x00\x00\x00\x00\x00\x07")
}

// The bytes of a string key are used where they lie, and these ones lie in
// memory that cannot be written to.
func TestTyped_StringKeysAreOnlyRead(t *testing.T) {
	const key = "a constant"
	c := ringtest.Small(t)
	view := ringcache.NewTyped[string](c, codec.String[string](), ringcache.TypedOptions{})
	for _, n := range []int{0, 10, 10, 5000, 200_000, 1 << 20, ringtest.MaxValue + 1} {
		err := view.Set(key, strings.Repeat("v", n))
		require.Equal(t, n > ringtest.MaxValue, err != nil)
		view.Has(key)
		_, ok, err := view.Get(key)
		require.NoError(t, err)
		require.Equal(t, n <= ringtest.MaxValue, ok)
		view.Del(key)
	}
	require.Equal(t, "a constant", key)
}

// What has been read is the caller's, whatever becomes of the entry.
func TestTyped_ValuesAreCopies(t *testing.T) {
	view := ringcache.NewTyped[int](ringtest.Small(t), codec.Bytes[[]byte](), ringcache.TypedOptions{})
	for _, n := range []int{1, 1000, 5000, 60_000, 100_000} {
		require.NoError(t, view.Set(1, ringtest.Pattern("first", n)))
		first, _, err := view.Get(1)
		require.NoError(t, err)
		require.NoError(t, view.Set(1, ringtest.Pattern("second", n))) // where the first one lay
		second, _, err := view.Get(1)
		require.NoError(t, err)
		require.Equal(t, ringtest.Pattern("first", n), first)
		require.Equal(t, ringtest.Pattern("second", n), second)
	}
}

func TestTyped_ErrDecode(t *testing.T) {
	c := ringtest.Small(t)
	o := ringcache.TypedOptions{}
	points := ringcache.NewTyped[string](c, pointCodec(), o)
	maps := ringcache.NewTyped[string](c, codec.JSON[map[string]int](), o)
	times := ringcache.NewTyped[string](c, codec.Binary[time.Time](), o)
	for _, size := range []int{1, 17, 1024, 1025, 100_000} {
		raw := append([]byte("{"), ringtest.Pattern("raw", size-1)...)
		require.NoError(t, c.Set([]byte("k"), raw))
		before := ringtest.StatsOf(c)

		p, ok, err := points.Get("k")
		require.ErrorIs(t, err, ringcache.ErrDecode)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the codec's own error")
		require.EqualError(t, err, fmt.Sprintf("ringcache: get entry \"k\" of %d bytes: "+
			"value cannot be decoded: point of %[1]d bytes: unexpected EOF", size))
		require.False(t, ok)
		require.Zero(t, p, "what a codec returns with an error")

		m, ok, err := maps.Get("k")
		var syntax *json.SyntaxError
		require.ErrorIs(t, err, ringcache.ErrDecode)
		require.ErrorAs(t, err, &syntax)
		require.False(t, ok)
		require.Nil(t, m)

		_, _, err = times.Get("k")
		require.ErrorIs(t, err, ringcache.ErrDecode)

		require.Equal(t, raw, c.Get(nil, []byte("k")), "the entry stays")
		require.True(t, points.Has("k"))
		require.Equal(t, before.Misses, ringtest.StatsOf(c).Misses)
	}
	require.NoError(t, points.Set("k", point{3, 4}))
	p, ok, err := points.Get("k")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, point{3, 4}, p)
}

// Whatever the error, nobody may read what is out of date.
func TestTyped_SetErrors(t *testing.T) {
	c := ringtest.Small(t)
	refuse := errors.New("not this one")
	view := ringcache.NewTyped[string](c, codec.Func(
		func(dst []byte, n int) ([]byte, error) {
			if n < 0 {
				return append(dst, "half of it"...), refuse
			}
			return append(dst, make([]byte, n)...), nil
		},
		func(data []byte) (int, error) { return len(data), nil },
	), ringcache.TypedOptions{Prefix: "n:"})

	for _, tt := range []struct {
		size int
		want []error
		text string
	}{
		{-1, []error{ringcache.ErrEncode, refuse},
			"ringcache: set entry: value cannot be encoded: not this one"},
		{ringtest.MaxValue + 1, []error{ringcache.ErrTooLarge},
			"ringcache: set entry: value of 2097153 bytes, at most 2097152: entry too large"},
	} {
		require.NoError(t, view.Set("k", 100))
		require.NoError(t, view.Set("other", 7))
		err := view.Set("k", tt.size)
		for _, want := range tt.want {
			require.ErrorIs(t, err, want)
		}
		require.EqualError(t, err, tt.text)
		_, ok, err := view.Get("k")
		require.NoError(t, err)
		require.False(t, ok)
		require.True(t, view.Has("other"))
	}

	err := view.Set(strings.Repeat("k", 65535-1), 1)
	require.ErrorIs(t, err, ringcache.ErrTooLarge, "the prefix counts")
	require.NoError(t, view.Set(strings.Repeat("k", 65535-2), 1))
	funcs := ringcache.NewTyped[int](c, codec.JSON[func()](), ringcache.TypedOptions{})
	require.ErrorIs(t, funcs.Set(1, nil), ringcache.ErrEncode)

	ringtest.CloseCache(t, c)
	require.ErrorIs(t, view.Set("k", 1), ringcache.ErrClosed)
	require.ErrorIs(t, view.Set("k", -1), ringcache.ErrEncode)
	_, ok, err := view.Get("other")
	require.NoError(t, err)
	require.False(t, ok)
	require.False(t, view.Has("other"))
	require.False(t, view.Del("other"))
}

func TestTyped_Prefixes(t *testing.T) {
	c := ringtest.Small(t)
	points := ringcache.NewTyped[uint32](c, pointCodec(), ringcache.TypedOptions{Prefix: "point:"})
	texts := texts[uint32](c, "text:")
	for i := range uint32(100) {
		require.NoError(t, points.Set(i, point{X: float64(i)}))
		require.NoError(t, texts.Set(i, fmt.Sprint(i)))
	}
	require.Equal(t, 200, c.Len())
	for i := range uint32(100) {
		require.True(t, texts.Del(i))
		require.False(t, texts.Has(i))
		p, ok, err := points.Get(i)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, float64(i), p.X)
	}
}

func TestTyped_LenAndReset(t *testing.T) {
	var gone []string
	g := ringtest.Tiny(4, 4096, 100)
	g.OnRemove = func(r ringcache.Removal) { gone = append(gone, string(r.Key)+" "+r.Reason.String()) }
	whole := ringtest.MustCache(t, g)
	for _, c := range []*ringcache.Cache{whole, whole.Namespace("n")} {
		points := ringcache.NewTyped[uint32](c, pointCodec(), ringcache.TypedOptions{Prefix: "p:"})
		words := texts[string](c, "w:")
		for i := range uint32(100) {
			require.NoError(t, points.Set(i, point{X: 1}))
			require.NoError(t, words.Set(fmt.Sprint(i), "word"))
		}
		require.NoError(t, words.Set("long", strings.Repeat("l", 5000))) // in a large bucket
		require.NoError(t, c.Set([]byte("p:other length"), nil))
		require.Equal(t, 100, points.Len())
		require.Equal(t, 101, words.Len())

		gone = nil
		words.Reset()
		require.Zero(t, words.Len())
		require.False(t, words.Has("7"))
		require.Equal(t, 100, points.Len())
		require.Len(t, gone, 101)
		require.Contains(t, gone, "w:long deleted")
		points.Reset()
		require.Equal(t, 1, c.Len(), "what is no key of a view stays")
		require.Zero(t, c.Stats().DelCalls)
	}
	require.NoError(t, ringtest.Validate(whole))
}

// As after Cache.Reset, the absence of a key is forgotten, and a load that began earlier stores
// nothing.
func TestTyped_ResetForgetsLoads(t *testing.T) {
	c := ringtest.Small(t)
	view := texts[string](c, "v:")
	loads := 0
	absent := func(context.Context, string) (string, time.Duration, error) {
		loads++
		return "", time.Hour, ringcache.ErrAbsent
	}
	for range 2 {
		_, err := view.GetOrLoad(t.Context(), "absent", absent)
		require.ErrorIs(t, err, ringcache.ErrAbsent)
	}
	require.Equal(t, 1, loads)
	v, err := view.GetOrLoad(t.Context(), "k",
		func(context.Context, string) (string, time.Duration, error) {
			view.Reset()
			return "old", 0, nil
		})
	require.NoError(t, err)
	require.Equal(t, "old", v)
	require.False(t, view.Has("k"))
	_, err = view.GetOrLoad(t.Context(), "absent", absent)
	require.ErrorIs(t, err, ringcache.ErrAbsent)
	require.Equal(t, 2, loads)
}

// The loads of other views and namespaces go on.
func TestTyped_ResetLeavesOtherLoads(t *testing.T) {
	c := ringtest.Small(t)
	in := func(name, prefix string) *ringcache.Typed[string, string] {
		if name == "" {
			return texts[string](c, prefix)
		}
		return texts[string](c.Namespace(name), prefix)
	}
	for name, views := range map[string][2]*ringcache.Typed[string, string]{
		"other prefix":    {in("a", "v:"), in("a", "w:")},
		"other namespace": {in("a", "v:"), in("b", "v:")},
		"outside":         {in("a", "v:"), in("", "v:")},
		"inside":          {in("", ""), in("a", "v:")},
	} {
		view, other := views[0], views[1]
		v, err := other.GetOrLoad(t.Context(), "k",
			func(context.Context, string) (string, time.Duration, error) {
				view.Reset()
				return "new", 0, nil
			})
		require.NoError(t, err)
		require.Equal(t, "new", v)
		require.True(t, other.Has("k"), name)
	}
}

// What has expired and is kept for GetOrLoad is removed too, in a namespace as elsewhere.
func TestTyped_ResetRemovesStaleValues(t *testing.T) {
	var now atomic.Int64 // loads end in goroutines of their own
	g := ringtest.Tiny(4, 4096, 100)
	g.Elapsed = func() time.Duration { return time.Duration(now.Load()) }
	g.TTL, g.StaleIfError = time.Minute, time.Hour
	whole := ringtest.MustCache(t, g)
	errDown := errors.New("down")
	down := func(context.Context, string) (string, time.Duration, error) { return "", 0, errDown }
	for _, c := range []*ringcache.Cache{whole, whole.Namespace("n")} {
		view, other := texts[string](c, "v:"), texts[string](c, "o:")
		for _, k := range []string{"short", strings.Repeat("long", 1000)} {
			require.NoError(t, view.Set(k, k))
			require.NoError(t, other.Set(k, k))
			now.Add(int64(2 * time.Minute))
			v, err := view.GetOrLoad(t.Context(), k, down)
			require.NoError(t, err)
			require.Equal(t, k, v)

			view.Reset()
			_, err = view.GetOrLoad(t.Context(), k, down)
			require.ErrorIs(t, err, errDown)
			v, err = other.GetOrLoad(t.Context(), k, down)
			require.NoError(t, err)
			require.Equal(t, k, v)
		}
	}
}

// Values are decoded while nothing is locked: a codec that writes to the very same key
// would wait for itself otherwise.
func TestTyped_ValuesAreDecodedUnlocked(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes) // closed only if nothing holds a lock
	key := []byte("k")
	view := ringcache.NewTyped[string](c, codec.Func(
		func(dst []byte, n int) ([]byte, error) { return append(dst, make([]byte, n)...), nil },
		func(data []byte) (int, error) {
			err := c.Set(key, []byte("a new one"))
			return len(data), err
		},
	), ringcache.TypedOptions{})
	for _, n := range []int{0, 100, 1024, 1025, 5000, 100_000, ringtest.MaxValue} {
		require.NoError(t, view.Set("k", n))
		done := make(chan int)
		go func() {
			size, _, err := view.Get("k")
			assert.NoError(t, err)
			done <- size
		}()
		select {
		case size := <-done:
			require.Equal(t, n, size)
		case <-time.After(ringtest.HangLimit):
			require.Fail(t, "a value is decoded under a lock", "%d bytes", n)
		}
		require.Equal(t, "a new one", string(c.Get(nil, key)))
	}
	ringtest.CloseCache(t, c)
}

func TestNewTyped_Panics(t *testing.T) {
	const want = "ringcache: make typed view: cache or codec is nil"
	c, o := ringtest.Small(t), ringcache.TypedOptions{}
	var noCache *ringcache.Cache
	require.PanicsWithValue(t, want, func() { ringcache.NewTyped[int](noCache, pointCodec(), o) })
	require.PanicsWithValue(t, want, func() { ringcache.NewTyped[int, point](c, nil, o) })
}

// Buffers are shared among calls, but never between two at a time.
func TestTyped_Concurrent(t *testing.T) {
	c := ringtest.Small(t)
	texts := texts[string](c, "text:")
	lists := ringcache.NewTyped[int](c, codec.Binary[list](),
		ringcache.TypedOptions{Prefix: "list:"})
	const keys = 50
	var hits sync.Map
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 2000 {
				k := (i*7 + g) % keys
				if i%3 == 0 {
					// Every length of a key's value is right, and it tells whose it is.
					n := 1 + k*(1+i%50)
					_ = texts.Set(fmt.Sprint(k), strings.Repeat(string(rune('0'+k)), n))
					_ = lists.Set(k, list{repeated(k, n)})
					continue
				}
				s, ok, err := texts.Get(fmt.Sprint(k))
				if err != nil || strings.Trim(s, string(rune('0'+k))) != "" || ok != (s != "") {
					assert.Fail(t, "not the text", "key %d: %.20q, %v, %v", k, s, ok, err)
				}
				l, ok2, err := lists.Get(k)
				for _, n := range l.items {
					if n != k {
						assert.Fail(t, "not the list", "list %d holds %d", k, n)
						break
					}
				}
				if err != nil || ok2 != (len(l.items) > 0) {
					assert.Fail(t, "not the list", "list %d: %v, %v", k, ok2, err)
				}
				if ok && ok2 {
					hits.Store(g, true)
				}
			}
		}()
	}
	wg.Wait()
	for g := range 4 {
		_, ok := hits.Load(g)
		require.True(t, ok, "goroutine %d has found nothing", g)
	}
}

// repeated returns k n times.
func repeated(k, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = k
	}
	return out
}
