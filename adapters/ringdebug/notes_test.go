package ringdebug

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// A healthy cache has no notes. Each thing that is wrong has one.
func TestNotes(t *testing.T) {
	type stats = ringcache.Stats
	healthy := func() *report {
		return &report{Stats: ringcache.Stats{
			GetCalls: 1000, Misses: 100, MaxBytesSize: 1 << 20, EffectiveMaxBytes: 1 << 20,
			EntriesCount: 1000, EvictedEntries: 5000,
			EvictedMisses: 50, Loads: ringcache.LoadStats{Started: 100, Errors: 5},
		}}
	}
	require.Equal(t, []string{}, notesOf(healthy()))
	for want, ail := range map[string]func(s *stats){
		"Only 49.9 % of the lookups hit":        func(s *stats) { s.Misses = 501 },
		"5.1 % of the lookups missed keys":      func(s *stats) { s.EvictedMisses = 51 },
		"6 of 100 loads failed":                 func(s *stats) { s.Loads.Errors = 6 },
		"3 lookups returned expired values":     func(s *stats) { s.Loads.StaleHits = 3 },
		"is 512.0 KB instead of 1.0 MB":         func(s *stats) { s.EffectiveMaxBytes = 1 << 19 },
		"7 values were not stored for lack":     func(s *stats) { s.Refused.NoMemory = 7 },
		"7 values were not stored because they": func(s *stats) { s.Refused.TooLarge = 7 },
		"Does it lack a unit?":                  func(s *stats) { s.Refused.TTLTooShort = 7 },
		"2 records were damaged":                func(s *stats) { s.Corruptions = 2 },
		"failed 2 times":                        func(s *stats) { s.Compression.Errors = 2 },
		"The cache started empty":               func(s *stats) { s.File.DiscardedFiles = 1 },
		"9 records of the file":                 func(s *stats) { s.File.DiscardedRecords = 9 },
	} {
		ill := healthy()
		ail(&ill.Stats)
		notes := notesOf(ill)
		require.Len(t, notes, 1, want)
		require.Contains(t, notes[0], want)
		ill.Watched = &watched{Stats: healthy().Stats}
		require.Empty(t, notesOf(ill), "it is over")
	}
	few := &report{Stats: ringcache.Stats{GetCalls: 99, Misses: 99,
		Loads: ringcache.LoadStats{Started: 9, Errors: 9}}}
	require.Empty(t, notesOf(few), "too few to judge by")
}

func TestFormat(t *testing.T) {
	require.Equal(t, "0", grouped(0))
	require.Equal(t, "999", grouped(999))
	require.Equal(t, "1,000", grouped(1000))
	require.Equal(t, "18,446,744,073,709,551,615", grouped(1<<64-1))
	require.Equal(t, "", rate(5, 0))
	require.Equal(t, "0", rate(0, 1))
	require.Equal(t, "0.5", rate(5, 10))
	require.Equal(t, "1,000", rate(5000, 5))
	require.Equal(t, "abc", cut("abc"))
}
