package snapshot

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func packed(t testing.TB, b []byte) []byte {
	t.Helper()
	p := pack(nil, b, new(packTable))
	out := make([]byte, len(b))
	require.True(t, unpack(out, p))
	require.True(t, bytes.Equal(b, out), "it has changed")
	require.LessOrEqual(t, len(p), len(b)+len(b)/255+16)
	return p
}

func TestPack_RoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	for n := range 100 {
		packed(t, noise[:n])
		packed(t, make([]byte, n))
		packed(t, bytes.Repeat([]byte("abc"), n))
	}
	require.Less(t, len(packed(t, make([]byte, MaxBlock))), MaxBlock/200)
	require.Less(t, len(packed(t, noise)), len(noise)+2000)
	var mixed []byte
	for len(mixed) < MaxBlock {
		from, n := rnd.IntN(len(noise)/100), rnd.IntN(300)
		mixed = append(mixed, noise[from:from+n]...)
	}
	require.Less(t, len(packed(t, mixed)), len(mixed)/2)
}

// What is no packed block is no block, and reads and writes nothing outside.
func TestUnpack_Damage(t *testing.T) {
	text := bytes.Repeat([]byte("some text that repeats itself, "), 30)
	p := pack(nil, text, new(packTable))
	for n := range p {
		require.False(t, unpack(make([]byte, len(text)), p[:n]), "%d bytes", n)
	}
	require.False(t, unpack(make([]byte, len(text)-1), p))
	require.False(t, unpack(make([]byte, len(text)+1), p))
	require.False(t, unpack(nil, nil))
}

// FuzzPack packs and unpacks any bytes, and unpacks them as they are.
func FuzzPack(f *testing.F) {
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), uint16(40))
	f.Add([]byte{0xff, 0xff, 0xff, 0}, uint16(1000))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		packed(t, b)
		unpack(make([]byte, n), b)
	})
}
