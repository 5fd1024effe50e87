package cold

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrefix_ComesBack(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 1 << 14, 1 << 20} {
		v := make([]byte, n)
		b := append(appendPrefix([]byte("before"), Dicts-1, v), "compressed"...)[len("before"):]
		got, err := parse(b, int64(n))
		require.NoError(t, err, "%d bytes", n)
		require.Equal(t, packed{Dicts - 1, check(v), n, []byte("compressed")}, got)
		if n > 0 {
			v[n/2] ^= 1
			require.NotEqual(t, check(v), got.check, "%d bytes, one of them another", n)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	whole := appendPrefix(nil, 1, make([]byte, 300))
	for n := range whole {
		_, err := parse(whole[:n], 1000)
		require.ErrorIs(t, err, ErrDamaged, "the first %d bytes", n)
	}
	_, err := parse(whole, 299)
	require.ErrorIs(t, err, ErrDamaged, "longer than the longest")
	whole[0] = Dicts
	_, err = parse(whole, 1000)
	require.ErrorIs(t, err, ErrDamaged, "no such dictionary")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(nil), int64(0))
	f.Add(appendPrefix(nil, 3, []byte("value")), int64(10))
	f.Add([]byte{0, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, int64(1<<30))
	f.Fuzz(func(t *testing.T, b []byte, most int64) {
		most = min(max(most, 0), math.MaxInt)
		p, err := parse(b, most)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		require.Less(t, p.dict, uint8(Dicts))
		require.True(t, p.size >= 0 && int64(p.size) <= most)
	})
}

func TestSamples_StayWithinTheBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Samples
	for range 20_000 {
		v := make([]byte, rnd.IntN(20_000))
		s.Add(v)
	}
	sum := 0
	require.True(t, s.Enough())
	for _, v := range s.values {
		require.LessOrEqual(t, len(v), longSample)
		sum += len(v)
	}
	require.LessOrEqual(t, sum, sampleBytes)
	require.Greater(t, sum, sampleBytes/2)
}

func TestShareFor(t *testing.T) {
	require.Zero(t, shareFor(0))
	require.Zero(t, shareFor(1.25))
	require.Equal(t, FullShare/2, shareFor(1.375))
	require.Equal(t, FullShare, shareFor(1.5))
	require.Equal(t, FullShare, shareFor(100))
}

func TestRatio_FollowsWhatComes(t *testing.T) {
	var r Ratio
	require.False(t, r.IsKnown())
	for range 10 << 10 {
		r.Add(1<<10, 1<<8)
	}
	require.Equal(t, 4.0, r.Value())
	require.True(t, r.IsKnown())
	for range 32 << 10 {
		r.Add(1<<10, 1<<10)
	}
	require.InDelta(t, 1, r.Value(), 0.05, "the old is forgotten")
}
