package zstd_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/zstd"
)

// made returns the Compressor of the tests.
func made(tb testing.TB) ringcache.Compressor {
	tb.Helper()
	by, err := zstd.New()
	require.NoError(tb, err)
	return by
}

// trained returns what compresses with a dictionary of samples.
func trained(tb testing.TB, samples [][]byte) ringcache.ValueCompressor {
	tb.Helper()
	dict := made(tb).BuildDict(samples)
	require.NotEmpty(tb, dict)
	return with(tb, dict)
}

func with(tb testing.TB, dict []byte) ringcache.ValueCompressor {
	tb.Helper()
	values, err := made(tb).WithDict(dict)
	require.NoError(tb, err)
	return values
}

// both returns what compresses with and without a dictionary, and values to compress.
func both(tb testing.TB, size int) (map[string]ringcache.ValueCompressor, [][]byte) {
	tb.Helper()
	samples, values := records(tb, ".json", size)
	return map[string]ringcache.ValueCompressor{
		"dictionary": trained(tb, samples), "none": with(tb, nil),
	}, values
}

func TestZstd_ValuesComeBack(t *testing.T) {
	for _, kind := range []string{".json", ".html"} {
		for _, size := range []int{1, 7, 60, 300, 1000, 3000, 10_000, 60_000, 200_000} {
			samples, values := records(t, kind, max(size, 50))
			for name, by := range map[string]ringcache.ValueCompressor{
				"dictionary": trained(t, samples), "none": with(t, nil),
			} {
				before, after := 0, 0
				for _, v := range values[:min(len(values), 500)] {
					v = v[:size]
					packed, err := by.Compress([]byte("head"), v)
					require.NoError(t, err)
					require.Equal(t, "head", string(packed[:4]))
					got, err := by.Decompress([]byte("front"), packed[4:], size)
					require.NoError(t, err)
					require.Equal(t, "front", string(got[:5]))
					require.True(t, bytes.Equal(v, got[5:]), "%s, %d bytes", name, size)
					before, after = before+size, after+len(packed)-4
				}
				if size >= 300 {
					assert.Less(t, after, before*9/10, "%s, %s, %d bytes", kind, name, size)
				}
			}
		}
	}
}

func TestZstd_DictionaryMakesValuesSmaller(t *testing.T) {
	for _, size := range []int{100, 300, 1000} {
		by, values := both(t, size)
		total := map[string]int{}
		for name, by := range by {
			for _, v := range values {
				packed, err := by.Compress(nil, v)
				require.NoError(t, err)
				total[name] += len(packed)
			}
		}
		assert.Less(t, total["dictionary"], total["none"]*85/100, "%d bytes", size)
	}
}

func TestZstd_EmptyAndRandomValuesComeBack(t *testing.T) {
	random := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	by, _ := both(t, 300)
	for name, by := range by {
		for _, v := range [][]byte{{}, random} {
			packed, err := by.Compress(nil, v)
			require.NoError(t, err, name)
			got, err := by.Decompress(nil, packed, len(v))
			require.NoError(t, err, name)
			assert.True(t, bytes.Equal(v, got), name)
		}
	}
}

func TestZstd_DictionaryIsUpTo64KBAndOwnsItsBytes(t *testing.T) {
	samples, _ := records(t, ".json", 1000)
	dict := made(t).BuildDict(samples)
	assert.LessOrEqual(t, len(dict), 64<<10)
	assert.Greater(t, len(dict), 60<<10)
	one := [][]byte{bytes.Clone(samples[0])}
	dict = made(t).BuildDict(one)
	clear(one[0])
	assert.Equal(t, samples[0], dict)

	assert.Nil(t, made(t).BuildDict(nil))
	assert.Nil(t, made(t).BuildDict([][]byte{[]byte("short")}))
}

func TestZstd_DictionaryOfAnotherLengthIsAnError(t *testing.T) {
	for _, n := range []int{1, 15, 64<<10 + 1} {
		_, err := made(t).WithDict(make([]byte, n))
		assert.ErrorContains(t, err, "zstd: dictionary of", "%d bytes", n)
	}
}

func TestZstd_OtherDictionaryReturnsOtherBytesOrAnError(t *testing.T) {
	samples, values := records(t, ".json", 1000)
	right, other := trained(t, samples[:60]), trained(t, samples[60:])
	differs := 0
	for _, v := range values {
		packed, err := right.Compress(nil, v)
		require.NoError(t, err)
		got := decompressDamaged(t, other, packed, len(v))
		if !bytes.Equal(v, got) {
			differs++
		}
	}
	assert.Greater(t, differs, len(values)/2)
}

func TestZstd_WrongSizeIsAnError(t *testing.T) {
	by, values := both(t, 300)
	for name, by := range by {
		packed, err := by.Compress(nil, values[0])
		require.NoError(t, err)
		for _, size := range []int{0, 1, 299, 301, 1 << 40} {
			got, err := by.Decompress([]byte("front"), packed, size)
			assert.Error(t, err, "%s, %d", name, size)
			assert.Equal(t, "front", string(got))
		}
	}
}

// decompressDamaged checks what holds for whatever src is, and returns the value.
func decompressDamaged(
	tb testing.TB, by ringcache.ValueCompressor, src []byte, size int,
) []byte {
	tb.Helper()
	const guard = 0xa5
	room := bytes.Repeat([]byte{guard}, size+64)
	before := bytes.Clone(src)
	got, err := by.Decompress(room[:0:size], src, size)
	require.True(tb, bytes.Equal(before, src), "src has changed")
	require.Equal(tb, bytes.Repeat([]byte{guard}, 64), room[size:], "wrote behind dst")
	if err != nil {
		require.Empty(tb, got)
		return nil
	}
	require.Len(tb, got, size)
	if size > 0 {
		require.Same(tb, &room[0], &got[0], "does not use the room of dst")
	}
	return got
}

func TestZstd_TruncatedValueIsAnError(t *testing.T) {
	by, values := both(t, 1000)
	for name, by := range by {
		packed, err := by.Compress(nil, values[0])
		require.NoError(t, err)
		for n := range packed {
			_, err := by.Decompress(nil, packed[:n], 1000)
			require.Error(t, err, "%s, %d of %d bytes", name, n, len(packed))
		}
	}
}

func TestZstd_DamagedValueIsAnErrorOrOtherBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 2))
	by, values := both(t, 1000)
	for _, by := range by {
		for _, v := range values[:200] {
			packed, err := by.Compress(nil, v)
			require.NoError(t, err)
			for range 20 {
				damaged := bytes.Clone(packed)
				damaged[random.IntN(len(damaged))] ^= byte(1 + random.IntN(255))
				decompressDamaged(t, by, damaged, len(v))
			}
		}
	}
}

func TestZstd_NothingIsAllocatedWithRoomInDst(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	by, values := both(t, 1000)
	for name, by := range by {
		packed, err := by.Compress(nil, values[0])
		require.NoError(t, err)
		room := make([]byte, 0, 4000)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := by.Compress(room, values[0]); err != nil {
				panic(err)
			}
		}), "Compress, %s", name)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := by.Decompress(room, packed, 1000); err != nil {
				panic(err)
			}
		}), "Decompress, %s", name)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := by.Decompress(room, packed, 1<<40); err == nil {
				panic("no error")
			}
		}), "Decompress of a wrong size, %s", name)
	}
}

func TestZstd_ServesSeveralGoroutines(t *testing.T) {
	by, values := both(t, 300)
	for _, by := range by {
		var all sync.WaitGroup
		for g := range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := g; i < min(len(values), 2000); i += 2 { // each value twice
					packed, err := by.Compress(nil, values[i])
					assert.NoError(t, err)
					got, err := by.Decompress(nil, packed, len(values[i]))
					assert.NoError(t, err)
					if !bytes.Equal(values[i], got) {
						t.Error("another value")
						return
					}
				}
			}()
		}
		all.Wait()
	}
}

func FuzzDecompress(f *testing.F) {
	samples, values := records(f, ".json", 300)
	dict, none := trained(f, samples), with(f, nil)
	for _, by := range []ringcache.ValueCompressor{dict, none} {
		for _, v := range values[:3] {
			packed, err := by.Compress(nil, v)
			require.NoError(f, err)
			f.Add(packed, uint16(len(v)))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, size uint16) {
		decompressDamaged(t, dict, src, int(size))
		decompressDamaged(t, none, src, int(size))
	})
}

func FuzzRoundTrip(f *testing.F) {
	samples, values := records(f, ".json", 300)
	f.Add(values[0])
	f.Add([]byte{})
	dict, none := trained(f, samples), with(f, nil)
	f.Fuzz(func(t *testing.T, v []byte) {
		for _, by := range []ringcache.ValueCompressor{dict, none} {
			packed, err := by.Compress(nil, v)
			require.NoError(t, err)
			got, err := by.Decompress(nil, packed, len(v))
			require.NoError(t, err)
			require.True(t, bytes.Equal(v, got))
		}
	})
}

// BenchmarkZstd reports what the README's table has: the ratio, with the 8 bytes that a
// compressed record has more, and the time of a value.
func BenchmarkZstd(b *testing.B) {
	for _, kind := range []string{".json", ".html"} {
		for _, size := range []int{100, 300, 1000, 3000, 10_000} {
			samples, values := records(b, kind, size)
			by, before, after := trained(b, samples), 0, 0
			var packed [][]byte
			for _, v := range values {
				p, err := by.Compress(nil, v)
				require.NoError(b, err)
				packed, before, after = append(packed, p), before+size, after+len(p)+8
			}
			room := make([]byte, 0, 2*size+1000)
			b.Run(fmt.Sprintf("%s/%d/compress", kind[1:], size), func(b *testing.B) {
				for i := range b.N {
					_, _ = by.Compress(room, values[i%len(values)])
				}
				b.ReportMetric(float64(before)/float64(after), "ratio")
			})
			b.Run(fmt.Sprintf("%s/%d/decompress", kind[1:], size), func(b *testing.B) {
				for i := range b.N {
					_, _ = by.Decompress(room, packed[i%len(packed)], size)
				}
			})
		}
	}
}
