package persist

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// idleOn returns a cache on a fake machine whose entries have that idle time.
func idleOn(t testing.TB, m *ringtest.FakeMachine, idle time.Duration) *ringcache.Cache {
	g := ringtest.Default(ringtest.MinBytes)
	g.ExpireAfterAccess, g.Machine = idle, m.Machine()
	g.Elapsed = func() time.Duration { return m.RealTime }
	return ringtest.MustCache(t, g)
}

// requireLeft fails unless the entry of k has so long to live; 0 means that it is not there.
func requireLeft(t *testing.T, c *ringcache.Cache, k string, want time.Duration) {
	t.Helper()
	left, ok := c.TTL([]byte(k))
	require.Equal(t, want != 0, ok, "%s has %v, want %v", k, left, want)
	require.LessOrEqual(t, left, want, k)
	require.Greater(t, left+200*time.Millisecond, want, k)
}

// Both deadlines come back from a snapshot, also into a cache of another idle time or of none; and
// what was idle for too long meanwhile does not.
func TestSnapshot_IdleTime(t *testing.T) {
	m := ringtest.NewFakeMachine()
	c := idleOn(t, m, 10*time.Second)
	large := ringtest.MinBytes / 16
	for name, size := range map[string]int{"short": 1, "long": 40_000, "large": large} {
		k, v := []byte(name), make([]byte, size)
		require.NoError(t, c.Set(k, v))
		require.NoError(t, c.SetWithTTL([]byte(name+" with TTL"), v, 17*time.Second))
	}
	m.Pass(4 * time.Second)
	require.NoError(t, c.Set([]byte("fresh"), nil))
	m.Pass(2 * time.Second)
	require.True(t, c.Has([]byte("short with TTL")))
	var b bytes.Buffer
	_, err := c.WriteSnapshot(&b)
	require.NoError(t, err)
	m.Pass(time.Second)
	const second = time.Second
	for idle, want := range map[time.Duration]struct {
		short, withTTL, fresh, read, readWithTTL time.Duration
	}{
		10 * second: {3 * second, 9 * second, 7 * second, 10 * second, 9 * second},
		time.Minute: {3 * second, 9 * second, 7 * second, time.Minute, 10 * second},
		5 * second:  {3 * second, 5 * second, 5 * second, 3 * second, 5 * second},
		0:           {3 * second, 9 * second, 7 * second, 3 * second, 9 * second},
	} {
		d := idleOn(t, m, idle)
		_, err := d.ReadSnapshot(bytes.NewReader(b.Bytes()))
		require.NoError(t, err)
		require.NoError(t, ringtest.Validate(d))
		for _, name := range []string{"short", "long", "large"} {
			requireLeft(t, d, name, want.short)
		}
		requireLeft(t, d, "short with TTL", want.withTTL)
		requireLeft(t, d, "long with TTL", 3*time.Second)
		requireLeft(t, d, "fresh", want.fresh)
		for _, name := range []string{"short", "long", "large", "short with TTL"} {
			require.True(t, d.Has([]byte(name)))
		}
		requireLeft(t, d, "short", want.read)
		requireLeft(t, d, "short with TTL", want.readWithTTL)
		require.NoError(t, ringtest.Validate(d))
	}
	m.Pass(4 * time.Second)
	d := idleOn(t, m, 10*time.Second)
	_, err = d.ReadSnapshot(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.False(t, d.Has([]byte("short")))
	require.True(t, d.Has([]byte("fresh")))
}

// A packed entry is saved with both deadlines.
func TestSnapshot_IdleTimeOfAPackedEntry(t *testing.T) {
	m := ringtest.NewFakeMachine()
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, func(g *ringtest.Shape) {
		g.ExpireAfterAccess, g.Machine = 10*time.Second, m.Machine()
		g.Elapsed = func() time.Duration { return m.RealTime }
	})
	k := []byte("k")
	p.SetPacked(t, k, func() error { return p.SetWithTTL(k, ringtest.Text(1, 300), 17*time.Second) })
	m.Pass(3 * time.Second)
	var b bytes.Buffer
	_, err := p.WriteSnapshot(&b)
	require.NoError(t, err)
	d := idleOn(t, m, 10*time.Second)
	_, err = d.ReadSnapshot(&b)
	require.NoError(t, err)
	requireLeft(t, d, "k", 7*time.Second)
	m.Pass(5 * time.Second)
	require.Equal(t, ringtest.Text(1, 300), d.Get(nil, k))
	requireLeft(t, d, "k", 9*time.Second)
}

// An entry that a partial snapshot has twice, because it was read, is loaded by overwriting it. In
// a cache without an idle time, it still expires when the saved one would have expired, not at its
// last deadline.
func TestLoad_IdleTimeOfAnEntrySavedTwice(t *testing.T) {
	c, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: ringtest.MinBytes, ExpireAfterAccess: time.Hour})
	require.NoError(t, err)
	k := []byte("k")
	require.NoError(t, c.SetWithTTL(k, []byte("v"), 24*time.Hour))
	require.True(t, c.Has(k))
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, c.Save(t.Context(), path, ringcache.SaveOptions{Partial: true}))
	require.NoError(t, c.Close())
	require.Equal(t, 2, entriesOf(t, ringtest.ReadFile(t, path))["k"].times)
	d, _ := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: ringtest.MinBytes})
	left, ok := d.TTL(k)
	require.True(t, ok)
	require.LessOrEqual(t, left, time.Hour)
	require.Greater(t, left, 59*time.Minute)
}

// LoadFromFile makes a cache with the idle time of the one that was saved.
func TestLoadFromFile_IdleTime(t *testing.T) {
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20,
		ExpireAfterAccess: time.Hour, RefreshAhead: time.Minute})
	require.NoError(t, err)
	_, path := ringtest.SnapshotOf(t, c)
	d, err := ringcache.LoadFromFile(path)
	require.NoError(t, err)
	require.NoError(t, d.Set([]byte("k"), nil))
	left, ok := d.TTL([]byte("k"))
	require.True(t, ok)
	require.Greater(t, left, 59*time.Minute)
	require.NoError(t, d.Close())
}

// LoadFromFile has the options of the saved cache to the nanosecond: rounded ones may be invalid.
func TestLoadFromFile_OptionsAreExact(t *testing.T) {
	want := ringcache.Options{MaxBytes: ringtest.MinBytes, TTL: time.Hour + 1,
		ExpireAfterAccess: 1050*time.Millisecond + 1, RefreshAhead: 510*time.Millisecond + 1}
	c, err := ringcache.NewWithOptions(want)
	require.NoError(t, err)
	_, path := ringtest.SnapshotOf(t, c)
	got := ringtest.MustLoad(t, path).Options()
	require.Equal(t, want.TTL, got.TTL)
	require.Equal(t, want.ExpireAfterAccess, got.ExpireAfterAccess)
	require.Equal(t, want.RefreshAhead, got.RefreshAhead)
}
