package s2_test

import (
	"testing"

	"github.com/ringcache/ringcache/compress/internal/compresstest"
	"github.com/ringcache/ringcache/compress/s2"
)

func TestS2(t *testing.T) { compresstest.Test(t, s2.New(), "s2") }

func FuzzDecompress(f *testing.F) { compresstest.FuzzDecompress(f, s2.New()) }

func FuzzRoundTrip(f *testing.F) { compresstest.FuzzRoundTrip(f, s2.New()) }

func BenchmarkS2(b *testing.B) { compresstest.Benchmark(b, s2.New()) }
