package zstd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/internal/compresstest"
	"github.com/ringcache/ringcache/compress/zstd"
)

// made returns the Compressor of the tests.
func made(tb testing.TB) ringcache.Compressor {
	tb.Helper()
	by, err := zstd.New()
	require.NoError(tb, err)
	return by
}

func TestZstd(t *testing.T) { compresstest.Test(t, made(t), "zstd") }

func FuzzDecompress(f *testing.F) { compresstest.FuzzDecompress(f, made(f)) }

func FuzzRoundTrip(f *testing.F) { compresstest.FuzzRoundTrip(f, made(f)) }

func BenchmarkZstd(b *testing.B) { compresstest.Benchmark(b, made(b)) }
