package codec_test

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// testCodec encodes and decodes values in buffers that are used again.
func testCodec[V any](t *testing.T, kind string, c ringcache.Codec[V], values ...V) {
	t.Helper()
	t.Run(kind, func(t *testing.T) {
		encoded := make([][]byte, len(values))
		var buf []byte
		for range 2 {
			for i, v := range values {
				out, err := c.Append(append(buf[:0], "head"...), v)
				require.NoError(t, err)
				require.Equal(t, "head", string(out[:4]), "what dst had before")
				encoded[i] = append([]byte{}, out[4:]...)
				buf = out
			}
			decoded := make([]V, len(values))
			for i := range values {
				data := append(buf[:0], encoded[i]...)
				v, err := c.Decode(data[:len(data):len(data)])
				require.NoError(t, err)
				decoded[i], buf = v, data
			}
			clear(buf[:cap(buf)])
			require.Equal(t, values, decoded)
		}
	})
}

type (
	name   string
	digest []byte
	point  struct{ X, Y float64 }
)

var points = codec.Func(
	func(dst []byte, p point) ([]byte, error) {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.X))
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.Y)), nil
	},
	func(data []byte) (point, error) {
		if len(data) != 16 {
			return point{}, errors.New("not 16 bytes")
		}
		return point{
			X: math.Float64frombits(binary.LittleEndian.Uint64(data)),
			Y: math.Float64frombits(binary.LittleEndian.Uint64(data[8:])),
		}, nil
	})

// list encodes itself through pointers, and relies on being decoded into a zero value.
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

func TestCodec_DecodesWhatWasEncoded(t *testing.T) {
	type user struct {
		Name string
		Tags []string
		Born *int `json:",omitempty"`
	}
	born := 1815
	users := []user{
		{},
		{Name: "Ada", Tags: []string{"a", "b"}, Born: &born},
		{Name: strings.Repeat("x", 5000)},
		{Name: "Bo"},
	}
	texts := []string{"", "short", strings.Repeat("m", 1024), strings.Repeat("h", 1<<20), "last"}
	var slices [][]byte
	var names []name
	for _, s := range texts {
		slices = append(slices, []byte(s))
		names = append(names, name(s))
	}

	testCodec(t, "json of structs", codec.JSON[user](), users...)
	testCodec(t, "json of pointers", codec.JSON[*user](), &users[1], nil, &users[2])
	testCodec[any](t, "json of any", codec.JSON[any](), 1.5, "text", nil, []any{true, "x"})
	testCodec(t, "strings", codec.String[string](), texts...)
	testCodec(t, "named strings", codec.String[name](), names...)
	testCodec(t, "bytes", codec.Bytes[[]byte](), slices...)
	testCodec(t, "named bytes", codec.Bytes[digest](), digest("sum"), digest{})
	testCodec(t, "functions", points, point{}, point{1, -2.5}, point{math.Inf(1), 0})
	testCodec(t, "binary, by value", codec.Binary[time.Time](),
		time.Unix(1, 2).UTC(), time.Time{}, time.Unix(1<<33, 0).UTC())
	testCodec(t, "binary, with pointers inside", codec.Binary[netip.Addr](),
		netip.MustParseAddr("fe80::1%eth0"), netip.Addr{}, netip.MustParseAddr("10.0.0.1"))
	testCodec(t, "binary, by pointer", codec.Binary[list](),
		list{[]int{1, 2, 3}}, list{[]int{4}}, list{make([]int, 1000)})
}

func TestBytes_NilIsDecodedAsEmpty(t *testing.T) {
	data, err := codec.Bytes[[]byte]().Append(nil, nil)
	require.NoError(t, err)
	v, err := codec.Bytes[[]byte]().Decode(data)
	require.NoError(t, err)
	require.NotNil(t, v)
	require.Empty(t, v)
}

func TestCodec_Errors(t *testing.T) {
	_, err := codec.JSON[func()]().Append(nil, func() {})
	require.Error(t, err)
	_, err = codec.JSON[int]().Decode([]byte("six"))
	require.Error(t, err)
	_, err = codec.Binary[time.Time]().Append(nil, time.Time{}.In(time.FixedZone("", 1<<22)))
	require.Error(t, err)
	at, err := codec.Binary[time.Time]().Decode([]byte("noon"))
	require.Error(t, err)
	require.Zero(t, at)
}

func TestFunc_NilFunctionPanics(t *testing.T) {
	encode := func(dst []byte, _ int) ([]byte, error) { return dst, nil }
	decode := func([]byte) (int, error) { return 0, nil }
	const want = "codec: make codec: function is nil"
	require.PanicsWithValue(t, want, func() { codec.Func(nil, decode) })
	require.PanicsWithValue(t, want, func() { codec.Func(encode, nil) })
}
