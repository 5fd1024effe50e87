package ringcache_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
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

func pointCodec() ringcache.Codec[point] { return ringcache.FuncCodec(appendPoint, decodePoint) }

// Named types must do as well as the built-in ones.
type (
	name   string
	digest []byte
	age    int8
	port   uint16
	userID uint64
)

// testKey sets a value under a key and looks for it under the bytes that the
// documentation says the key has.
func testKey[K ringcache.Key](t *testing.T, key K, want string) {
	t.Helper()
	for _, prefix := range []string{"", "p:", strings.Repeat("long prefix ", 20)} {
		t.Run(fmt.Sprintf("%T/%v/prefix=%d", key, key, len(prefix)), func(t *testing.T) {
			c := small(t)
			view := ringcache.NewTyped[K](c, ringcache.StringCodec[string](), ringcache.TypedOptions{Prefix: prefix})
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
	c := small(t)
	view := ringcache.NewTyped[string](c, ringcache.StringCodec[string](), ringcache.TypedOptions{})
	for _, n := range []int{0, 10, 10, 5000, 200_000, 1 << 20, maxValue + 1} {
		err := view.Set(key, strings.Repeat("v", n))
		require.Equal(t, n > maxValue, err != nil)
		view.Has(key)
		_, ok, err := view.Get(key)
		require.NoError(t, err)
		require.Equal(t, n <= maxValue, ok)
		view.Del(key)
	}
	require.Equal(t, "a constant", key)
}

// testCodec sends values through a cache, twice with other values between, so
// that buffers which are used again would show.
func testCodec[V any](t *testing.T, kind string, codec ringcache.Codec[V], values ...V) {
	t.Helper()
	t.Run(kind, func(t *testing.T) {
		view := ringcache.NewTyped[int](small(t), codec, ringcache.TypedOptions{})
		for range 2 {
			for i, v := range values {
				require.NoError(t, view.Set(i, v))
			}
			read := make([]V, len(values))
			for i := range values {
				v, ok, err := view.Get(i)
				require.NoError(t, err)
				require.True(t, ok)
				read[i] = v
			}
			for i := range values { // others have come after it by now
				require.Equal(t, values[i], read[i])
			}
		}
		v, ok, err := view.Get(-1)
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, v)
	})
}

func TestTyped_Codecs(t *testing.T) {
	type user struct {
		Name string
		Tags []string
		Born *int `json:",omitempty"`
	}
	born := 1815
	users := []user{{}, {Name: "Ada", Tags: []string{"a", "b"}, Born: &born}, {Name: strings.Repeat("x", 5000)}, {Name: "Bo"}}
	texts := []string{"", "short", strings.Repeat("m", 1024), strings.Repeat("n", 1025), strings.Repeat("l", 100_000), strings.Repeat("h", 1<<20), "last"}
	var slices [][]byte
	var names []name
	for _, s := range texts {
		slices = append(slices, []byte(s))
		names = append(names, name(s))
	}

	testCodec(t, "json of structs", ringcache.JSONCodec[user](), users...)
	testCodec(t, "json of pointers", ringcache.JSONCodec[*user](), &users[1], nil, &users[2])
	testCodec[any](t, "json of any", ringcache.JSONCodec[any](), 1.5, "text", nil, []any{true, "x"})
	testCodec(t, "strings", ringcache.StringCodec[string](), texts...)
	testCodec(t, "named strings", ringcache.StringCodec[name](), names...)
	testCodec(t, "bytes", ringcache.BytesCodec[[]byte](), slices...)
	testCodec(t, "named bytes", ringcache.BytesCodec[digest](), digest("sum"), digest{})
	testCodec(t, "functions", pointCodec(), point{}, point{1, -2.5}, point{math.Inf(1), 0})
	testCodec(t, "binary, by value", ringcache.BinaryCodec[time.Time](), time.Unix(1, 2).UTC(), time.Time{}, time.Unix(1<<33, 0).UTC())
	testCodec(t, "binary, with pointers inside", ringcache.BinaryCodec[netip.Addr](),
		netip.MustParseAddr("fe80::1%eth0"), netip.Addr{}, netip.MustParseAddr("10.0.0.1"))
	testCodec(t, "binary, by pointer", ringcache.BinaryCodec[list](), list{[]int{1, 2, 3}}, list{[]int{4}}, list{make([]int, 1000)})
}

// list encodes itself through pointers, and its decoder relies on being given
// the zero value.
type list struct{ items []int }

func (l *list) AppendBinary(dst []byte) ([]byte, error) {
	for _, n := range l.items {
		dst = append(dst, byte(n))
	}
	return dst, nil
}

func (l *list) UnmarshalBinary(data []byte) error {
	for _, b := range data {
		l.items = append(l.items, int(b))
	}
	return nil
}

func TestTyped_NilBytesComeBackEmpty(t *testing.T) {
	view := ringcache.NewTyped[int](small(t), ringcache.BytesCodec[[]byte](), ringcache.TypedOptions{})
	require.NoError(t, view.Set(1, nil))
	v, ok, err := view.Get(1)
	require.NoError(t, err)
	require.True(t, ok)
	require.NotNil(t, v)
	require.Empty(t, v)
}

// What has been read is the caller's, whatever becomes of the entry.
func TestTyped_ValuesAreCopies(t *testing.T) {
	view := ringcache.NewTyped[int](small(t), ringcache.BytesCodec[[]byte](), ringcache.TypedOptions{})
	for _, n := range []int{1, 1000, 5000, 60_000, 100_000} {
		require.NoError(t, view.Set(1, pattern("first", n)))
		first, _, err := view.Get(1)
		require.NoError(t, err)
		require.NoError(t, view.Set(1, pattern("second", n))) // where the first one lay
		second, _, err := view.Get(1)
		require.NoError(t, err)
		require.Equal(t, pattern("first", n), first)
		require.Equal(t, pattern("second", n), second)
	}
}

func TestTyped_ErrDecode(t *testing.T) {
	c := small(t)
	points := ringcache.NewTyped[string](c, pointCodec(), ringcache.TypedOptions{})
	maps := ringcache.NewTyped[string](c, ringcache.JSONCodec[map[string]int](), ringcache.TypedOptions{})
	times := ringcache.NewTyped[string](c, ringcache.BinaryCodec[time.Time](), ringcache.TypedOptions{})
	for _, size := range []int{1, 17, 1024, 1025, 100_000} {
		raw := append([]byte("{"), pattern("raw", size-1)...)
		require.NoError(t, c.Set([]byte("k"), raw))
		before := stats(c)

		p, ok, err := points.Get("k")
		require.ErrorIs(t, err, ringcache.ErrDecode)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the codec's own error")
		require.EqualError(t, err, fmt.Sprintf("ringcache: get entry of %d bytes: value cannot be decoded: point of %[1]d bytes: unexpected EOF", size))
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
		require.Equal(t, before.Misses, stats(c).Misses)
	}
	require.NoError(t, points.Set("k", point{3, 4}))
	p, ok, err := points.Get("k")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, point{3, 4}, p)
}

// Whatever the error, nobody may read what is out of date.
func TestTyped_SetErrors(t *testing.T) {
	c := small(t)
	refuse := errors.New("not this one")
	view := ringcache.NewTyped[string](c, ringcache.FuncCodec(
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
		{-1, []error{ringcache.ErrEncode, refuse}, "ringcache: set entry: value cannot be encoded: not this one"},
		{maxValue + 1, []error{ringcache.ErrTooLarge}, "ringcache: set entry: value of 2097153 bytes, at most 2097152: entry too large"},
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

	require.ErrorIs(t, view.Set(strings.Repeat("k", maxKey-1), 1), ringcache.ErrTooLarge, "the prefix counts")
	require.NoError(t, view.Set(strings.Repeat("k", maxKey-2), 1))
	require.ErrorIs(t, ringcache.NewTyped[int](c, ringcache.JSONCodec[func()](), ringcache.TypedOptions{}).Set(1, nil), ringcache.ErrEncode)

	require.NoError(t, c.Close())
	require.ErrorIs(t, view.Set("k", 1), ringcache.ErrClosed)
	require.ErrorIs(t, view.Set("k", -1), ringcache.ErrEncode)
	_, ok, err := view.Get("other")
	require.NoError(t, err)
	require.False(t, ok)
	require.False(t, view.Has("other"))
	require.False(t, view.Del("other"))
}

func TestTyped_Prefixes(t *testing.T) {
	c := small(t)
	points := ringcache.NewTyped[uint32](c, pointCodec(), ringcache.TypedOptions{Prefix: "point:"})
	texts := ringcache.NewTyped[uint32](c, ringcache.StringCodec[string](), ringcache.TypedOptions{Prefix: "text:"})
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

// A codec that appends to what it decodes must not reach what lies behind it.
// Some of these values cross the end of a chunk, and some are copied.
func TestTyped_DecodeHasNoRoomBehindItsData(t *testing.T) {
	view := ringcache.NewTyped[int](small(t), ringcache.FuncCodec(
		func(dst []byte, n int) ([]byte, error) { return append(dst, make([]byte, n)...), nil },
		func(data []byte) (int, error) {
			if len(data) != cap(data) {
				return 0, fmt.Errorf("%d bytes of %d", len(data), cap(data))
			}
			return len(data), nil
		},
	), ringcache.TypedOptions{})
	sizes := []int{0, 1, 500, 1000, 1024, 1025, 2500, 60_000, 70_000}
	for key := range 5000 { // many to each bucket
		want := sizes[key%len(sizes)]
		require.NoError(t, view.Set(key, want))
		n, ok, err := view.Get(key)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, n)
	}
}

// A codec may return bytes of its caller's instead of appending them; they must
// not become a buffer that other Sets write to.
func TestTyped_CarelessAppend(t *testing.T) {
	c := small(t)
	careless := ringcache.NewTyped[int](c, ringcache.FuncCodec(
		func(_ []byte, v []byte) ([]byte, error) { return v, nil },
		func(data []byte) ([]byte, error) { return bytes.Clone(data), nil },
	), ringcache.TypedOptions{Prefix: "careless:"})
	others := ringcache.NewTyped[int](c, ringcache.StringCodec[string](), ringcache.TypedOptions{})
	for _, n := range []int{1, 100, 5000, 70_000} {
		mine := pattern("mine", n)
		require.NoError(t, careless.Set(n, mine))
		for i := range 10 {
			require.NoError(t, others.Set(i, strings.Repeat("#", n)))
		}
		require.Equal(t, pattern("mine", n), mine)
		v, _, err := careless.Get(n)
		require.NoError(t, err)
		require.Equal(t, mine, v)
	}
}

// Long values are decoded while nothing is locked: a codec that writes to the
// very same key would wait for itself otherwise.
func TestTyped_LongValuesAreDecodedUnlocked(t *testing.T) {
	c := ringcache.New(floor) // closed only if nothing holds a lock
	key := []byte("k")
	view := ringcache.NewTyped[string](c, ringcache.FuncCodec(
		func(dst []byte, n int) ([]byte, error) { return append(dst, make([]byte, n)...), nil },
		func(data []byte) (int, error) {
			err := c.Set(key, []byte("a new one"))
			return len(data), err
		},
	), ringcache.TypedOptions{})
	for _, n := range []int{1025, 5000, 100_000, maxValue} {
		require.NoError(t, view.Set("k", n))
		done := make(chan int)
		go func() {
			size, _, err := view.Get("k")
			if err != nil {
				t.Error(err)
			}
			done <- size
		}()
		select {
		case size := <-done:
			require.Equal(t, n, size)
		case <-time.After(10 * time.Second):
			t.Fatalf("a value of %d bytes is decoded under a lock", n)
		}
		require.Equal(t, "a new one", string(c.Get(nil, key)))
	}
	require.NoError(t, c.Close())
}

// A panic of a codec is its caller's to deal with, and the cache's to survive.
func TestTyped_CodecPanics(t *testing.T) {
	c := small(t)
	view := ringcache.NewTyped[int](c, ringcache.FuncCodec(
		func(dst []byte, n int) ([]byte, error) {
			if n < 0 {
				panic("append")
			}
			return append(dst, make([]byte, n)...), nil
		},
		func(data []byte) (int, error) { panic("decode") },
	), ringcache.TypedOptions{})
	for _, n := range []int{10, 5000} {
		require.NoError(t, view.Set(n, n))
		require.PanicsWithValue(t, "decode", func() { _, _, _ = view.Get(n) })
		require.PanicsWithValue(t, "append", func() { _ = view.Set(n, -1) })
		require.True(t, view.Has(n))
		require.NoError(t, view.Set(n, n+1))
		require.True(t, view.Del(n))
	}
}

func TestNewTyped_Panics(t *testing.T) {
	const want = "ringcache: make typed view: cache or codec is nil"
	c := small(t)
	require.PanicsWithValue(t, want, func() { ringcache.NewTyped[int](nil, pointCodec(), ringcache.TypedOptions{}) })
	require.PanicsWithValue(t, want, func() { ringcache.NewTyped[int, point](c, nil, ringcache.TypedOptions{}) })
}

// Buffers are shared among calls, but never between two at a time.
func TestTyped_Concurrent(t *testing.T) {
	c := small(t)
	texts := ringcache.NewTyped[string](c, ringcache.StringCodec[string](), ringcache.TypedOptions{Prefix: "text:"})
	lists := ringcache.NewTyped[int](c, ringcache.BinaryCodec[list](), ringcache.TypedOptions{Prefix: "list:"})
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
					t.Errorf("key %d: %.20q, %v, %v", k, s, ok, err)
				}
				l, ok2, err := lists.Get(k)
				for _, n := range l.items {
					if n != k {
						t.Errorf("list %d holds %d", k, n)
						break
					}
				}
				if err != nil || ok2 != (len(l.items) > 0) {
					t.Errorf("list %d: %v, %v", k, ok2, err)
				}
				if ok && ok2 {
					hits.Store(g, true)
				}
			}
		}()
	}
	wg.Wait()
	for g := range 4 {
		if _, ok := hits.Load(g); !ok {
			t.Errorf("goroutine %d has found nothing", g)
		}
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
