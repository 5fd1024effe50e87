//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package persist

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// clockedFile is a cache in a file on a fake machine.
type clockedFile struct {
	*ringtest.FakeMachine
	*ringcache.Cache
	t    testing.TB
	g    ringtest.Shape
	path string
}

func newClockedFile(t testing.TB) *clockedFile {
	f := &clockedFile{FakeMachine: ringtest.NewFakeMachine(), t: t, g: ringtest.Tiny(2, 256, 16)}
	f.path = filepath.Join(ringtest.DirInMemory(t), "cache")
	f.g.Machine = f.Machine()
	return f
}

func (f *clockedFile) open() {
	f.t.Helper()
	f.Cache = ringtest.MustOpen(f.t, f.g, f.path)
}

// leave ends the process, in order or not.
func (f *clockedFile) leave(closed bool) {
	f.t.Helper()
	if closed {
		require.NoError(f.t, f.Close())
	} else {
		ringtest.Abandon(f.Cache)
	}
}

func (f *clockedFile) set(k string, ttl time.Duration) {
	f.t.Helper()
	require.NoError(f.t, f.SetWithTTL([]byte(k), []byte(k), ttl))
}

// While the machine runs on, no wall clock makes an entry live longer. One that is set ahead makes
// it expire early; if it is set back, or was never set, what has an expiry is not there, all else
// is, and the clock begins anew.
func TestFile_WallClockIsSetWhileTheMachineRuns(t *testing.T) {
	unset := time.Date(1970, 1, 1, 0, 0, 5, 0, time.UTC)
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	const known = 50 * time.Second
	for name, tt := range map[string]struct {
		made, back time.Time
		boot       time.Duration // since the boot, in another time namespace; 0: in the same one
		left       time.Duration
	}{
		"as it was":               {now, now.Add(2 * time.Second), 0, known},
		"another time namespace":  {now, now.Add(2 * time.Second), time.Minute, known},
		"a later one":             {now, now.Add(2 * time.Second), 2 * time.Hour, 0},
		"set back a second":       {now, now.Add(time.Second), 0, known},
		"set ahead ten seconds":   {now, now.Add(12 * time.Second), 0, known - 10*time.Second},
		"made before it was set":  {unset, now, 0, 0},
		"set back an hour":        {now, now.Add(-time.Hour), 0, 0},
		"made a year ahead":       {now.AddDate(1, 0, 0), now, 0, 0},
		"set ahead":               {now, now.AddDate(20, 0, 0), 0, 0},
		"unset again":             {now, unset, 0, 0},
		"before 1970":             {now, time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), 0, 0},
		"beyond what a file says": {now, time.Date(2600, 1, 1, 0, 0, 0, 0, time.UTC), 0, 0},
	} {
		for _, closed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/closed=%v", name, closed), func(t *testing.T) {
				f := newClockedFile(t)
				f.Wall = tt.made
				f.open()
				f.set("minute", time.Minute)
				f.set("second", time.Second)
				f.set("for ever", 0)
				f.Pass(2 * time.Second)
				f.leave(closed)
				f.Wall = tt.back
				if tt.boot != 0 {
					f.Boot = tt.boot
				}
				f.Pass(8 * time.Second)
				f.open()
				require.False(t, f.Has([]byte("second")))
				require.True(t, f.Has([]byte("for ever")))
				left, ok := f.TTL([]byte("minute"))
				require.Equal(t, tt.left > 0, ok)
				require.LessOrEqual(t, left, tt.left)
				require.GreaterOrEqual(t, left, tt.left-2*clock.Tick)

				// What is set now lives as long as it is to, and no longer.
				f.set("new", time.Second)
				f.set("minute", 2*time.Second)
				f.Pass(time.Second)
				require.False(t, f.Has([]byte("new")))
				require.True(t, f.Has([]byte("minute")))
				f.Pass(time.Second)
				require.False(t, f.Has([]byte("minute")))
				f.leave(true)
			})
		}
	}
}

// After a reboot there is only the wall clock. It is believed if it says that time has passed;
// if it cannot be true, what has an expiry is not there, all else is, and the clock begins anew.
func TestFile_WallClockAfterAReboot(t *testing.T) {
	unset := time.Date(1970, 1, 1, 0, 0, 5, 0, time.UTC)
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	const known = 40 * time.Second
	for name, tt := range map[string]struct {
		at, back time.Time
		left     time.Duration
	}{
		"a good clock":          {now, now.Add(20 * time.Second), known},
		"set back":              {now, now.Add(-time.Second), 0},
		"unset now":             {now, unset, 0},
		"unset before":          {unset, now, 0},
		"unset both times":      {unset, unset.Add(time.Second), 0},
		"beyond 32 bits":        {now, now.AddDate(14, 0, 0), 0},
		"beyond what it counts": {now, now.AddDate(500, 0, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newClockedFile(t)
			f.Wall = tt.at
			f.open()
			f.set("minute", time.Minute)
			f.set("for ever", 0)
			f.leave(true)
			f.Reboot(time.Minute)
			f.Wall = tt.back
			f.open()
			require.True(t, f.Has([]byte("for ever")))
			left, ok := f.TTL([]byte("minute"))
			require.Equal(t, tt.left > 0, ok)
			require.LessOrEqual(t, left, tt.left)
			require.GreaterOrEqual(t, left, tt.left-2*clock.Tick)
			require.Equal(t, !ok, f.Stats().File.DiscardedRecords == 1)
			f.set("new", time.Second)
			f.Pass(time.Second)
			require.False(t, f.Has([]byte("new")))
			f.leave(true)
		})
	}
}

// A process that dies before it has noted its clock leaves no expiry that another believes, of
// whatever boot the older marks are.
func TestFile_DeathBeforeTheClockIsNoted(t *testing.T) {
	f := newClockedFile(t)
	f.open()
	f.set("hour", time.Hour)
	f.set("for ever", 0)
	f.leave(true)
	f.Reboot(2 * time.Hour)
	store, h, err := ringfile.Open(f.path, f.g.Machine.Moment().ID, ringfile.Header{})
	require.NoError(t, err)
	require.False(t, store.IsNew)
	require.NoError(t, store.Use(&h))
	store.Release()
	f.open()
	require.False(t, f.Has([]byte("hour")))
	require.True(t, f.Has([]byte("for ever")))
	f.leave(true)
}

// A snapshot's lives go on in the same way, in whichever order it is read.
func TestSnapshot_WallClockIsSet(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		wall   time.Time
		reboot bool
		left   time.Duration // of a minute; 0: it is not there
	}{
		"same boot":             {now.Add(time.Second), false, 50 * time.Second},
		"same boot, set back":   {now.Add(-time.Hour), false, 0},
		"same boot, set ahead":  {now.Add(40 * time.Second), false, 20 * time.Second},
		"another, a good clock": {now.Add(10 * time.Second), true, 50 * time.Second},
		"another, set back":     {now.Add(-time.Second), true, 0},
		"another, unset":        {time.Unix(5, 0), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := ringtest.NewFakeMachine()
			g := ringtest.Default(ringtest.MinBytes)
			g.Machine = m.Machine()
			c := ringtest.MustCache(t, g)
			require.NoError(t, c.SetWithTTL([]byte("minute"), nil, time.Minute))
			require.NoError(t, c.Set([]byte("for ever"), nil))
			var b bytes.Buffer
			_, err := c.WriteSnapshot(&b)
			require.NoError(t, err)
			m.Pass(10 * time.Second)
			if m.Wall = tt.wall; tt.reboot {
				m.Boots++
			}
			d := ringtest.MustCache(t, g)
			_, err = d.ReadSnapshot(&b)
			require.NoError(t, err)
			require.True(t, d.Has([]byte("for ever")))
			left, ok := d.TTL([]byte("minute"))
			require.Equal(t, tt.left > 0, ok)
			require.LessOrEqual(t, left, tt.left)
			// The caches' own clocks are real ones.
			require.GreaterOrEqual(t, left, tt.left-10*time.Second)
		})
	}
}
