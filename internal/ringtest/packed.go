package ringtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/policy"
)

// PackedCache is a cache of one bucket whose goroutine is the test.
type PackedCache struct {
	*ringcache.Cache
	Fillers int
	Size    int // of their values
	Now     time.Duration
	Left    []Departure
}

// Told returns what OnRemove was told of a key.
func (p *PackedCache) Told(k []byte) (all []Departure) {
	for _, d := range p.Left {
		if d.K == string(k) {
			all = append(all, d)
		}
	}
	return all
}

// FillPacked sets n values, and has each compressed before the next.
func (p *PackedCache) FillPacked(t *testing.T, n int) {
	t.Helper()
	for range n {
		p.Fill(t)
		CompressAll(p.Cache)
	}
}

// FillUntilPacked sets values until the goroutine has compressed some.
func (p *PackedCache) FillUntilPacked(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		for range 50 {
			p.Fill(t)
		}
		return p.Stats().Compression.Compressed > 0
	}, HangLimit, time.Microsecond)
}

// RequireTrue fails if the cache has another value for a key than the one that was set.
func (p *PackedCache) RequireTrue(t *testing.T) (hits int) {
	t.Helper()
	for id := 1; id <= p.Fillers; id++ {
		if v, ok := p.HasGet(nil, fmt.Appendf(nil, "filler %d", id)); ok {
			require.Equal(t, string(Text(id, p.Size)), string(v), "filler %d", id)
			hits++
		}
	}
	return hits
}

// MakeDict has a dictionary made.
func (p *PackedCache) MakeDict(t *testing.T) {
	for i := range 1000 {
		Shared(p.Cache).Compression.Samples.Add(Text(i, 200))
	}
	RenewDicts(p.Cache)
	require.NotZero(t, Shared(p.Cache).Compression.Dict)
}

// Departure is what OnRemove was told of an entry.
type Departure struct {
	K, V   string
	Reason ringcache.RemovalReason
}

// NewPackedCache returns one, made by that Compressor and as shape says.
func NewPackedCache(t testing.TB, by ringcache.Compressor, shape func(g *Shape)) *PackedCache {
	t.Helper()
	SkipUnderRace(t)
	p := &PackedCache{Now: time.Minute, Size: 300}
	g := WithCold(Tiny(1, 1024, 256), by)
	g.ByHand = true
	g.Elapsed = func() time.Duration { return p.Now }
	g.OnRemove = func(gone ringcache.Removal) {
		p.Left = append(p.Left, Departure{string(gone.Key), string(gone.Value), gone.Reason})
	}
	if shape != nil {
		shape(&g)
	}
	p.Cache = MustCache(t, g)
	for range 1500 { // the first that the policy drops find no cold part yet
		p.Fill(t)
		CompressAll(p.Cache)
	}
	require.NotZero(t, p.Stats().Compression.Compressed)
	return p
}

// PackedKey and PackedValue are of the entry that the tests look at.
var (
	PackedKey   = []byte("the key")
	PackedValue = Text(1<<20, 500)
)

// Text returns a value of n bytes that can be compressed, another one for each seed.
func Text(seed, n int) []byte {
	var b []byte
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, `{"user":%d,"name":"somebody","visits":%d},`, seed, seed*7+i)
	}
	return b[:n]
}

// NoRing stands for that of a key which is not there.
const NoRing = policy.Rings
