package ringdebug

import (
	"fmt"

	"github.com/ringcache/ringcache"
)

// Notes tell an operator what to look at. The thresholds are those of the alerts in
// docs/metrics.md; the page also shows the figures themselves.
const (
	lowHitRatio  = 0.5
	tooSmall     = 0.05 // of the lookups miss evicted keys
	highFailures = 0.05
	lowBound     = 0.9

	// With fewer lookups or loads, ratios mean little.
	fewLookups = 100
	fewLoads   = 10
)

// notesOf returns the notes of a report.
func notesOf(r *report) []string {
	s := r.recent()
	notes := append([]string{}, notesOfUse(&s)...)
	return append(notes, notesOfFaults(&s)...)
}

// notesOfUse returns the notes about hits and loads.
func notesOfUse(s *ringcache.Stats) (notes []string) {
	note := func(is bool, format string, args ...any) {
		if is {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	isBusy := s.GetCalls >= fewLookups
	note(isBusy && s.HitRatio() < lowHitRatio,
		"Only %.1f %% of the lookups hit. Have the keys changed, or is a client scanning?",
		100*s.HitRatio())
	evicted := float64(s.EvictedMisses) / float64(max(s.GetCalls, 1))
	note(isBusy && evicted > tooSmall,
		"The cache is too small: %.1f %% of the lookups missed keys that it had evicted lately.",
		100*evicted)
	l := &s.Loads
	note(l.Started >= fewLoads && float64(l.Errors) > highFailures*float64(l.Started),
		"%d of %d loads failed: check the source of the values.", l.Errors, l.Started)
	note(l.StaleHits > 0,
		"%d lookups returned expired values: their loads had failed or were late.", l.StaleHits)
	return notes
}

// notesOfFaults returns the notes about events that should not happen.
func notesOfFaults(s *ringcache.Stats) (notes []string) {
	note := func(n uint64, format string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf(format, n))
		}
	}
	if float64(s.EffectiveMaxBytes) < lowBound*float64(s.MaxBytesSize) {
		notes = append(notes, fmt.Sprintf("The system refuses memory: the bound in force is %v "+
			"instead of %v.", byteCount(s.EffectiveMaxBytes), byteCount(s.MaxBytesSize)))
	}
	no := &s.Refused
	note(no.NoMemory, "%d values were not stored for lack of memory.")
	note(no.TooLarge, "%d values were not stored because they, or their keys, were too long.")
	note(no.TTLTooShort, "%d values were not stored because their TTL was below 100 ms. "+
		"Does it lack a unit?")
	note(s.Corruptions, "%d records were damaged: the memory or the file of the cache is damaged, "+
		"most often by other code in the process, or a Compressor fails. Restart the process, "+
		"and check code that uses unsafe or cgo.")
	note(s.Compression.Errors, "The Compressor failed %d times.")
	note(s.File.DiscardedFiles, "The cache started empty: its file was damaged or had another "+
		"Version, or the machine had crashed (%d file discarded).")
	note(s.File.DiscardedRecords, "%d records of the file could not be used at the start.")
	return notes
}
