package compresstest

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// allocates is the most bytes that damaged data makes the decompressors allocate, apart from its
// length and the value's: a decoder is made the first time.
const allocates = 1 << 20

// FuzzDecompress checks that data that is not a compressed value gives an error or another value,
// and takes memory in proportion to its length.
func FuzzDecompress(f *testing.F, by ringcache.Compressor) {
	s := suite{by: by}
	samples, values := records(f, ".json", 300)
	dict, none := s.trained(f, samples), s.with(f, nil)
	for _, by := range []ringcache.ValueCompressor{dict, none} {
		for _, v := range values[:3] {
			packed, err := by.Compress(nil, v)
			require.NoError(f, err)
			f.Add(packed, uint16(len(v)))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, size uint16) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decompressDamaged(t, dict, src, int(size))
		decompressDamaged(t, none, src, int(size))
		runtime.ReadMemStats(&after)
		most := 8*(len(src)+int(size)) + allocates // the check itself makes copies
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
	})
}

// FuzzRoundTrip checks that every value is restored.
func FuzzRoundTrip(f *testing.F, by ringcache.Compressor) {
	s := suite{by: by}
	samples, values := records(f, ".json", 300)
	f.Add(values[0])
	f.Add([]byte{})
	dict, none := s.trained(f, samples), s.with(f, nil)
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

// Benchmark reports the figures of the README's table: the ratio, including 11 bytes per value, and
// the time for one value.
func Benchmark(b *testing.B, by ringcache.Compressor) {
	s := suite{by: by}
	for _, kind := range []string{".json", ".html"} {
		for _, size := range []int{100, 300, 1000, 3000, 10_000} {
			samples, values := records(b, kind, size)
			by, before, after := s.trained(b, samples), 0, 0
			var packed [][]byte
			for _, v := range values {
				p, err := by.Compress(nil, v)
				require.NoError(b, err)
				packed, before, after = append(packed, p), before+size, after+len(p)+11
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
