package model

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// FuzzCache runs the operations that the input spells against the model, on a
// cache whose shape is taken from the input's first bytes.
func FuzzCache(f *testing.F) {
	rnd := ringtest.NewRand(1)
	for i := range 8 {
		data := make([]byte, 3+ringtest.OpSize*40)
		ringtest.FillRandom(rnd, data)
		data[0], data[1], data[2] = byte(i)|byte(i<<7), byte(i/2), byte(i/4)|byte(i<<5)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 {
			return
		}
		width := data[2]
		g := fuzzGeometry(data[0], data[1], width)
		data = data[3:]
		_, bad := g.Compressor.(*ringtest.BadCompressor)
		r := ringtest.NewRunner(t, g, width&4 != 0 && !bad) // of what it damages, nobody is told
		for len(data) > 0 {
			part := data[:min(len(data), 64*ringtest.OpSize)]
			data = data[len(part):]
			if err := r.Run(part); err != nil {
				require.NoError(t, err, "%s", r.Trail())
			}
			ringtest.SinkAll(r.C)
			if err := ringtest.Validate(r.C); err != nil {
				require.NoError(t, err, "%s", r.Trail())
			}
		}
		if err := r.Finish(); err != nil {
			require.NoError(t, err, "%s", r.Trail())
		}
	})
}

// fuzzGeometry returns one of many tiny shapes.
func fuzzGeometry(shape, chunks, width byte) ringtest.Shape {
	g := ringtest.Tiny(1<<(shape&0x7f%3), 64<<(shape&0x7f/3%4), 8+int(chunks))
	if chunks%2 == 1 {
		g.ExpectedEntries = ringtest.SomeExpectation(int(shape) + int(chunks)*3)
	}
	if width%2 == 0 {
		g = ringtest.Narrow(g)
		g.PosBits += uint(width / 2 % 3)
	}
	if width&8 != 0 {
		g.TTL = 5 * time.Second
	}
	if width >= 0xe0 {
		g.Seed = [2]uint64{}
	}
	if shape&0x80 != 0 {
		g.Policy = ringcache.PolicyFIFO
	}
	return ringtest.MaybeCold(g, width)
}

// FuzzSetGet stores any bytes under any key, then overwrites and deletes them.
func FuzzSetGet(f *testing.F) {
	f.Add([]byte(nil), []byte(nil))
	f.Add([]byte("k"), []byte{})
	f.Add(bytes.Repeat([]byte("k"), 64), bytes.Repeat([]byte("v"), 300))
	f.Add([]byte("k"), bytes.Repeat([]byte("v"), 513))
	f.Add([]byte("k"), bytes.Repeat([]byte("v"), 0xa0)) // with a cold part
	g := ringtest.Tiny(4, 64, 32)                       // values of up to 512 bytes, over many chunks
	f.Fuzz(func(t *testing.T, k, v []byte) {
		c := ringtest.MustCache(t, ringtest.MaybeCold(g, ringtest.Reliable(byte(len(v)))))
		for _, value := range [][]byte{v, append(v, k...), v} {
			err := c.Set(k, value)
			if len(k) > 65535 || len(value) > g.MaxBytes/16 {
				require.ErrorIs(t, err, ringcache.ErrTooLarge, "%d and %d bytes", len(k), len(value))
				require.False(t, c.Has(k), "%d and %d bytes", len(k), len(value))
				continue
			}
			if err != nil {
				require.NoError(t, err, "Set of %d and %d bytes", len(k), len(value))
			}
			ringtest.SinkAll(c)
			got, ok := c.HasGet(nil, k)
			require.True(t, ok)
			require.True(t, bytes.Equal(got, value), "read %.64x, want %.64x", got, value)
			require.Equal(t, 1, c.Len())
		}
		had := c.Has(k)
		require.Equal(t, had, c.Del(k))
		require.False(t, c.Has(k))
		require.Zero(t, c.Len())
	})
}
