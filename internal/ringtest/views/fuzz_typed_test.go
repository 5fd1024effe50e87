package views

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// fuzzRecord is a value of several kinds of fields.
type fuzzRecord struct {
	Text   string
	Number int64
	Float  float64
	Raw    []byte
	Next   *fuzzRecord
}

// fuzzNumbers is a codec by hand.
var fuzzNumbers = codec.Func(
	func(dst []byte, n int64) ([]byte, error) {
		return binary.BigEndian.AppendUint64(dst, uint64(n)), nil
	},
	func(data []byte) (int64, error) {
		if len(data) != 8 {
			return 1, errors.New("not 8 bytes")
		}
		return int64(binary.BigEndian.Uint64(data)), nil
	})

// same reports whether two values are equal, times if they are the same moment.
func same(a, b any) bool {
	if t, ok := a.(time.Time); ok {
		return t.Equal(b.(time.Time))
	}
	return reflect.DeepEqual(a, b)
}

// roundTrip sets want under key, which has to lie under the bytes at.
func roundTrip[K ringcache.Key, V any](
	t *testing.T, c *ringcache.Cache, codec ringcache.Codec[V], prefix string, key K, at string,
	want V,
) {
	t.Helper()
	view := ringcache.NewTyped[K](c, codec, ringcache.TypedOptions{Prefix: prefix})
	at = prefix + at
	require.NoError(t, c.Set([]byte(at), []byte("an older value")))
	data, refused := codec.Append(nil, want)
	err := view.Set(key, want)
	if refused != nil {
		require.ErrorIs(t, err, ringcache.ErrEncode, "%#v", want)
		require.False(t, c.Has([]byte(at)))
		return
	}
	require.NoError(t, err, "%#v", want)
	ringtest.SinkAll(c)
	require.True(t, view.Has(key), "%#v", want)
	stored, ok := c.HasGet(nil, []byte(at))
	require.True(t, ok, "%#v is not under key %q", want, at)
	require.True(t, bytes.Equal(stored, data), "%#v is %.64x, want %.64x", want, stored, data)
	got, ok, err := view.Get(key)
	require.NoError(t, err, "%#v", want)
	require.True(t, ok, "%#v", want)
	require.True(t, same(got, want), "got %#v, want %#v", got, want)
	roundTripMany(t, view, key, want)
	seen := false
	for again := range view.Keys() {
		seen = seen || same(again, key)
	}
	require.True(t, seen, "%q is not key %#v", at, key)
	require.True(t, view.Del(key))
	require.False(t, c.Has([]byte(at)))

	n := c.Namespace(prefix)
	inside := ringcache.NewTyped[K](n, codec, ringcache.TypedOptions{Prefix: prefix})
	require.NoError(t, inside.Set(key, want))
	require.True(t, n.Has([]byte(at)))
	require.False(t, c.Has([]byte(at)))
	roundTripMany(t, inside, key, want)
	n.Reset()
	require.False(t, inside.Has(key))
}

// roundTripMany reads what is under key in all other ways.
func roundTripMany[K ringcache.Key, V any](
	t *testing.T, view *ringcache.Typed[K, V], key K, want V,
) {
	t.Helper()
	require.NoError(t, view.SetBatch([]K{key, key}, []V{want, want}))
	vals, found := make([]V, 1), make([]bool, 1)
	_, err := view.GetBatch([]K{key}, vals, found)
	require.NoError(t, err)
	require.True(t, found[0])
	require.True(t, same(vals[0], want), "got %#v, want %#v", vals[0], want)
	v, err := view.GetOrLoad(context.Background(), key,
		func(context.Context, K) (v V, _ time.Duration, _ error) { return v, 0, ringcache.ErrAbsent })
	require.NoError(t, err)
	require.True(t, same(v, want), "got %#v, want %#v", v, want)
	loops := 0
	for k, v := range view.All() {
		if same(k, key) {
			loops++
			require.True(t, same(v, want), "got %#v, want %#v", v, want)
		}
	}
	require.Equal(t, 1, loops)
	_, stored, err := view.SetIfAbsent(key, want, time.Hour)
	require.NoError(t, err)
	require.False(t, stored)
}

// FuzzTyped sends values through every codec, under every kind of key.
func FuzzTyped(f *testing.F) {
	f.Add("", []byte(nil), int64(0), 0.0, byte(0))
	f.Add("user:", []byte("\xff\x00"), int64(-1), 1e300, byte(1))
	f.Add("\xff\xfe", bytes.Repeat([]byte("0123456789abcdef"), 4), int64(-1<<63), -0.5, byte(40))
	f.Fuzz(func(t *testing.T, s string, raw []byte, n int64, x float64, times byte) {
		c := ringtest.MustCache(t, ringtest.Roomy(ringtest.Reliable(times)&^0x0f))
		raw = bytes.Repeat(raw[:min(len(raw), 100)], 1+int(times%80))
		s = s[:min(len(s), 1000)] // six times as long in JSON, and twice in nested
		prefix := string(raw[:min(len(raw), int(times))])
		text := string([]rune(s)) // JSON has no other strings
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n))
		var wide [8]byte // of an int, which is narrower on some machines
		binary.BigEndian.PutUint64(wide[:], uint64(int64(int(n))))
		r := fuzzRecord{Text: text, Number: n, Float: x, Raw: raw, Next: &fuzzRecord{Number: ^n}}
		at := time.Unix(n, int64(times)).In(time.FixedZone("", int(int32(n))%100_000))
		addr, _ := netip.AddrFromSlice(raw[:min(len(raw), 4+12*int(times%2))])
		if addr.Is6() {
			addr = addr.WithZone(s)
		}
		roundTrip(t, c, codec.String[string](), prefix, s, s, string(raw))
		roundTrip(t, c, codec.Bytes[[]byte](), prefix, raw, string(raw), append([]byte{}, s...))
		roundTrip(t, c, codec.JSON[fuzzRecord](), prefix, n, string(b[:]), r)
		nested := any(map[string]any{text: []any{text, nil, true}})
		roundTrip(t, c, codec.JSON[any](), prefix, int(n), string(wide[:]), nested)
		roundTrip(t, c, codec.Binary[time.Time](), prefix, int32(n), string(b[4:]), at)
		roundTrip(t, c, codec.Binary[netip.Addr](), prefix, uint16(n), string(b[6:]), addr)
		roundTrip(t, c, fuzzNumbers, prefix, int8(n), string(b[7:]), n)
	})
}

// decode reads raw bytes through a view: what the codec makes of them is a value that survives a
// round trip, or nothing at all, and takes memory in proportion to them.
func decode[V any](t *testing.T, c *ringcache.Cache, codec ringcache.Codec[V], raw []byte) {
	t.Helper()
	require.NoError(t, c.Set([]byte("k"), raw))
	view := ringcache.NewTyped[string](c, codec, ringcache.TypedOptions{})
	var v V
	var ok bool
	var err error
	allocated := ringtest.Allocated(func() { v, ok, err = view.Get("k") })
	const perByte = 128 // JSON decodes a map from six bytes
	require.LessOrEqual(t, allocated, uint64(16<<10+perByte*len(raw)), "%T of %.64q", codec, raw)
	require.Equal(t, err == nil, ok, "%T of %.64q", codec, raw)
	if err != nil {
		require.ErrorIs(t, err, ringcache.ErrDecode, "%T of %.64q", codec, raw)
	}
	got, ok := c.HasGet(nil, []byte("k"))
	require.True(t, ok, "%T of %.64q", codec, raw)
	require.True(t, bytes.Equal(got, raw), "%T of %.64q: it is now %.64q", codec, raw, got)
	if err == nil {
		roundTrip(t, c, codec, "", "k", "k", v)
	} else if !reflect.ValueOf(&v).Elem().IsZero() {
		require.Fail(t, "a value beside the error", "%T of %.64q: %#v", codec, raw, v)
	}
}

// parse takes raw bytes for a key: if they are one, they are its bytes.
func parse[K ringcache.Key](t *testing.T, c *ringcache.Cache, raw []byte) {
	t.Helper()
	view := ringcache.NewTyped[K](c, codec.String[string](), ringcache.TypedOptions{})
	if c.Set(raw, nil) != nil {
		return // too long
	}
	for key := range view.Keys() {
		require.True(t, view.Has(key), "%#v of %.64x", key, raw)
	}
}

// FuzzCodec has every codec decode any bytes.
func FuzzCodec(f *testing.F) {
	for _, v := range []string{
		"", "8 bytes!", "null", `{"Text":"a","Raw":"AA==","Next":{"Float":1e9}}`,
		`[{"a":[1.5,"\ud800"]}]`, "\x7f\x00\x00\x01", `{"":`, `[`, `{"Next":`,
	} {
		f.Add([]byte(v), byte(0))
		f.Add([]byte(v), byte(99))
	}
	at, _ := time.Unix(1, 2).In(time.FixedZone("", 3601)).MarshalBinary()
	addr, _ := netip.MustParseAddr("fe80::1%eth0").MarshalBinary()
	f.Add(at, byte(0))
	f.Add(addr, byte(99))
	f.Fuzz(func(t *testing.T, raw []byte, times byte) {
		c := ringtest.MustCache(t, ringtest.Roomy(ringtest.Reliable(times)&^0x0f))
		raw = bytes.Repeat(raw[:min(len(raw), 100)], 1+int(times%100)) // beyond inPlace too
		decode(t, c, codec.String[string](), raw)
		decode(t, c, codec.Bytes[[]byte](), raw)
		decode(t, c, codec.JSON[fuzzRecord](), raw)
		decode(t, c, codec.JSON[any](), raw)
		decode(t, c, codec.Binary[time.Time](), raw)
		decode(t, c, codec.Binary[netip.Addr](), raw)
		decode(t, c, fuzzNumbers, raw)
		parse[string](t, c, raw)
		parse[[]byte](t, c, raw)
		parse[int8](t, c, raw)
		parse[uint16](t, c, raw)
		parse[int32](t, c, raw)
		parse[uint64](t, c, raw)
		parse[int](t, c, raw)
		parse[uintptr](t, c, raw)
	})
}
