// Package compresstest contains the tests that each Compressor must pass.
package compresstest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// Test checks that a Compressor meets the requirements of the cache, with real JSON and HTML. Its
// errors begin with the name of its package.
func Test(t *testing.T, by ringcache.Compressor, name string) {
	s := suite{by, name}
	for what, test := range map[string]func(*testing.T){
		"ValuesComeBack":                            s.valuesComeBack,
		"DictionaryMakesValuesSmaller":              s.dictionaryMakesValuesSmaller,
		"EmptyAndRandomValuesComeBack":              s.emptyAndRandomValuesComeBack,
		"DictionaryIsUpTo64KBAndOwnsItsBytes":       s.dictionaryIsUpTo64KBAndOwnsItsBytes,
		"DictionaryOfAnotherLengthIsAnError":        s.dictionaryOfAnotherLengthIsAnError,
		"OtherDictionaryReturnsOtherBytesOrAnError": s.otherDictionaryReturnsOtherBytesOrAnError,
		"WrongSizeIsAnError":                        s.wrongSizeIsAnError,
		"TruncatedValueIsAnError":                   s.truncatedValueIsAnError,
		"DamagedValueIsAnErrorOrOtherBytes":         s.damagedValueIsAnErrorOrOtherBytes,
		"NothingIsAllocatedWithRoomInDst":           s.nothingIsAllocatedWithRoomInDst,
		"ServesSeveralGoroutines":                   s.servesSeveralGoroutines,
		"CacheReturnsWhatWasSet":                    s.cacheReturnsWhatWasSet,
	} {
		t.Run(what, test)
	}
}

// suite contains the tests of a Compressor.
type suite struct {
	by   ringcache.Compressor
	name string
}

// trained returns a compressor that uses a dictionary of samples.
func (s suite) trained(tb testing.TB, samples [][]byte) ringcache.ValueCompressor {
	tb.Helper()
	dict := s.by.BuildDict(samples)
	require.NotEmpty(tb, dict)
	return s.with(tb, dict)
}

func (s suite) with(tb testing.TB, dict []byte) ringcache.ValueCompressor {
	tb.Helper()
	values, err := s.by.WithDict(dict)
	require.NoError(tb, err)
	return values
}

// both returns compressors with and without a dictionary, and values to compress.
func (s suite) both(tb testing.TB, size int) (map[string]ringcache.ValueCompressor, [][]byte) {
	tb.Helper()
	samples, values := records(tb, ".json", size)
	return map[string]ringcache.ValueCompressor{
		"dictionary": s.trained(tb, samples), "none": s.with(tb, nil),
	}, values
}

func (s suite) valuesComeBack(t *testing.T) {
	for _, kind := range []string{".json", ".html"} {
		for _, size := range []int{1, 7, 60, 300, 1000, 3000, 10_000, 60_000, 200_000} {
			samples, values := records(t, kind, max(size, 50))
			for name, by := range map[string]ringcache.ValueCompressor{
				"dictionary": s.trained(t, samples), "none": s.with(t, nil),
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

func (s suite) dictionaryMakesValuesSmaller(t *testing.T) {
	for _, size := range []int{100, 300, 1000} {
		by, values := s.both(t, size)
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

func (s suite) emptyAndRandomValuesComeBack(t *testing.T) {
	random := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	by, _ := s.both(t, 300)
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

func (s suite) dictionaryIsUpTo64KBAndOwnsItsBytes(t *testing.T) {
	samples, _ := records(t, ".json", 1000)
	dict := s.by.BuildDict(samples)
	assert.LessOrEqual(t, len(dict), 64<<10)
	assert.Greater(t, len(dict), 60<<10)
	one := [][]byte{bytes.Clone(samples[0])}
	dict = s.by.BuildDict(one)
	clear(one[0])
	assert.Equal(t, samples[0], dict)

	assert.Nil(t, s.by.BuildDict(nil))
	assert.Nil(t, s.by.BuildDict([][]byte{[]byte("short")}))
}

func (s suite) dictionaryOfAnotherLengthIsAnError(t *testing.T) {
	for _, n := range []int{1, 15, 64<<10 + 1} {
		_, err := s.by.WithDict(make([]byte, n))
		assert.ErrorContains(t, err, s.name+": make compressor: dictionary of", "%d bytes", n)
	}
}

func (s suite) otherDictionaryReturnsOtherBytesOrAnError(t *testing.T) {
	samples, values := records(t, ".json", 1000)
	right, other := s.trained(t, samples[:60]), s.trained(t, samples[60:])
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

func (s suite) wrongSizeIsAnError(t *testing.T) {
	by, values := s.both(t, 300)
	for name, by := range by {
		packed, err := by.Compress(nil, values[0])
		require.NoError(t, err)
		for _, size := range []int{0, 1, 299, 301, math.MaxInt32} {
			got, err := by.Decompress([]byte("front"), packed, size)
			assert.Error(t, err, "%s, %d", name, size)
			assert.Equal(t, "front", string(got))
		}
	}
}

// decompressDamaged checks the guarantees that hold for any src, and returns the value.
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

func (s suite) truncatedValueIsAnError(t *testing.T) {
	by, values := s.both(t, 1000)
	for name, by := range by {
		packed, err := by.Compress(nil, values[0])
		require.NoError(t, err)
		for n := range packed {
			_, err := by.Decompress(nil, packed[:n], 1000)
			require.Error(t, err, "%s, %d of %d bytes", name, n, len(packed))
		}
	}
}

func (s suite) damagedValueIsAnErrorOrOtherBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 2))
	by, values := s.both(t, 1000)
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

func (s suite) nothingIsAllocatedWithRoomInDst(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	by, values := s.both(t, 1000)
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
			if _, err := by.Decompress(room, packed, math.MaxInt32); err == nil {
				panic("no error")
			}
		}), "Decompress of a wrong size, %s", name)
	}
}

func (s suite) servesSeveralGoroutines(t *testing.T) {
	by, values := s.both(t, 300)
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
