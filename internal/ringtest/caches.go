package ringtest

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/testhook"
)

// StatsOf returns the statistics of a cache.
func StatsOf(c *ringcache.Cache) (s ringcache.Stats) {
	c.UpdateStats(&s)
	return s
}

// TimedCache returns a cache, and the cache's age, which the test advances.
func TimedCache(t testing.TB, g Shape) (*ringcache.Cache, *time.Duration) {
	t.Helper()
	age := new(time.Duration)
	g.Elapsed = func() time.Duration { return *age }
	return MustCache(t, g), age
}

// FillRandom fills b with random bytes.
func FillRandom(rnd *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
}

// MixedSize returns the length of the value of an id: one in 50 makes a large record in RoomyCases.
func MixedSize(id uint32) int {
	if id%50 == 7 {
		return 60_000
	}
	return int(id*7%200) + SelfSize
}

// RoomyCases returns shapes that have room for all entries of the tests that use them, with records
// in small and in large buckets.
func RoomyCases() []Shape {
	zero := Tiny(2, 256, 2000)
	zero.Seed = [2]uint64{}
	return []Shape{
		Tiny(1, 1024, 2000), Tiny(2, 256, 8000), Tiny(16, 4096, 100), zero,
		Default(MinBytes), Default(MinBytes / 8),
	}
}

// Abandon leaves the cache's file as a killed process leaves it, without closing anything.
func Abandon(c *ringcache.Cache) {
	EachBucket(c, func(b Bucket) {
		b.Mu.Lock()
		b.Closed = true // so that what the test still calls is harmless
		b.Index.Reset()
		b.Mu.Unlock()
	})
	// What these two files have is in them without Close, which releases their locks as a death does.
	_ = testhook.PartsOf(c).CloseNames()
	if z := Shared(c).Compression; z != nil {
		_ = z.File.Close()
	}
	Shared(c).File.Release()
}

// DirInMemory returns a temporary folder for a few megabytes, which is on a tmpfs if there is one.
// A test that opens files again and again would wait for the disk, to which each opening and each
// Close writes.
func DirInMemory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "ringcache")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// MustOpen opens a cache of any shape on a file.
func MustOpen(t testing.TB, g Shape, path string) *ringcache.Cache {
	t.Helper()
	c, err := Open(g, path)
	require.NoError(t, err)
	return c
}

// OpenFile opens a cache of the default shape on a file.
func OpenFile(t testing.TB, path string, maxBytes int) *ringcache.Cache {
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes, File: path})
	require.NoError(t, err)
	return c
}

// MustResize resizes a cache, and checks its invariants and its bound.
func MustResize(t *testing.T, c *ringcache.Cache, maxBytes int) {
	t.Helper()
	require.NoError(t, c.Resize(maxBytes))
	require.NoError(t, Validate(c), "resized to %d", maxBytes)
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, maxBytes, s.MaxBytesSize)
	require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize, "resized to %d", maxBytes)
	require.Zero(t, s.Corruptions)
}

// ZeroAllocs fails the test if fn allocates.
func ZeroAllocs(t *testing.T, kind, call string, fn func()) {
	t.Helper()
	assert.Zero(t, testing.AllocsPerRun(200, fn), "allocations of %s: %s", kind, call)
}

// Wide is a value of fixed size whose encoding has N more bytes than A and B.
type Wide struct{ A, B, N uint64 }

// WideCodec is the codec of Wide.
type WideCodec struct{}

// Append appends the bytes of a value.
func (WideCodec) Append(dst []byte, v Wide) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint64(dst, v.A)
	dst = binary.LittleEndian.AppendUint64(dst, v.B)
	for range v.N {
		dst = append(dst, 0)
	}
	return dst, nil
}

// Decode returns the value of bytes.
func (WideCodec) Decode(data []byte) (Wide, error) {
	return Wide{
		A: binary.LittleEndian.Uint64(data),
		B: binary.LittleEndian.Uint64(data[8:]),
		N: uint64(len(data) - 16),
	}, nil
}

// IDKey returns the key of an id.
func IDKey(i int) []byte { return binary.LittleEndian.AppendUint32([]byte("key "), uint32(i)) }

// FillLimited sets twice as much as the bound of an empty cache, in values of 4,000 bytes, while
// the system gives the cache about got bytes. It checks that the cache is full and consistent then.
func FillLimited(t *testing.T, c *ringcache.Cache, got int) {
	t.Helper()
	const size = 4000
	n := uint32(2 * Shared(c).Bound() / size)
	var key, val []byte
	for id := range n {
		key, val = TrafficKey(key, id), Stamp{ID: id, Version: 1, Size: size}.Value(val)
		if err := c.Set(key, val); err != nil {
			require.NoError(t, err, "set %d", id)
		}
	}
	s := c.Stats()
	require.Less(t, s.EffectiveMaxBytes, s.MaxBytesSize)
	require.LessOrEqual(t, s.ReservedBytes, s.EffectiveMaxBytes)
	require.InEpsilon(t, got, s.EffectiveMaxBytes, 0.1)
	require.Greater(t, s.BytesSize, s.EffectiveMaxBytes*7/10)
	require.Zero(t, s.Refused.NoMemory)
	require.Equal(t, int(n), c.Len()+int(s.EvictedEntries), "what became of the Sets")
	live := 0
	for id := range n {
		v, ok := c.HasGet(val[:0], TrafficKey(key, id))
		if val = v; ok {
			live++
			require.True(t, Stamp{ID: id, Version: 1, Size: size}.Wrote(v), "key %d", id)
		}
	}
	require.Equal(t, c.Len(), live)
}
