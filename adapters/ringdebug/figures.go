package ringdebug

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringcache/ringcache"
)

// group is a table of figures.
type group struct {
	Title string
	Rated bool // rows have rates
	Rows  []row
}

// row is a figure with its label.
type row struct{ Label, Value, Rate string }

// counted is a counter: its label, and its value in the statistics.
type counted struct {
	label string
	of    func(s *ringcache.Stats) uint64
}

// counters are the groups of counters. The cold part is shown only if there is a Compressor.
var counters = []struct {
	title string
	list  []counted
}{
	{"Lookups", []counted{
		{"lookups", func(s *ringcache.Stats) uint64 { return s.GetCalls }},
		{"hits", func(s *ringcache.Stats) uint64 { return s.GetCalls - min(s.Misses, s.GetCalls) }},
		{"misses", func(s *ringcache.Stats) uint64 { return s.Misses }},
		{"misses of evicted keys", func(s *ringcache.Stats) uint64 { return s.EvictedMisses }},
		{"collisions", func(s *ringcache.Stats) uint64 { return s.Collisions }},
		{"corruptions", func(s *ringcache.Stats) uint64 { return s.Corruptions }},
	}},
	{"Writes", []counted{
		{"sets", func(s *ringcache.Stats) uint64 { return s.SetCalls }},
		{"deletes", func(s *ringcache.Stats) uint64 { return s.DelCalls }},
		{"not stored: too large", func(s *ringcache.Stats) uint64 { return s.Refused.TooLarge }},
		{"not stored: no memory", func(s *ringcache.Stats) uint64 { return s.Refused.NoMemory }},
		{"not stored: TTL too short", func(s *ringcache.Stats) uint64 { return s.Refused.TTLTooShort }},
	}},
	{"Removals", []counted{
		{"evicted", func(s *ringcache.Stats) uint64 { return s.EvictedEntries }},
		{"expired", func(s *ringcache.Stats) uint64 { return s.ExpiredEntries }},
	}},
	{"Loads", []counted{
		{"started", func(s *ringcache.Stats) uint64 { return s.Loads.Started }},
		{"failed", func(s *ringcache.Stats) uint64 { return s.Loads.Errors }},
		{"result not stored", func(s *ringcache.Stats) uint64 { return s.Loads.Dropped }},
		{"expired value returned instead", func(s *ringcache.Stats) uint64 { return s.Loads.StaleHits }},
		{"not needed: no value exists", func(s *ringcache.Stats) uint64 { return s.Loads.NegativeHits }},
	}},
	{"Cold part", []counted{
		{"hits", func(s *ringcache.Stats) uint64 { return s.Compression.ColdHits }},
		{"compressed", func(s *ringcache.Stats) uint64 { return s.Compression.Compressed }},
		{"failures of the compressor", func(s *ringcache.Stats) uint64 { return s.Compression.Errors }},
	}},
}

// groupsOf returns the figures of a report for the HTML.
func groupsOf(r *report) (groups []group) {
	s := &r.Stats
	for _, of := range counters {
		if of.title == "Cold part" && r.Options.Compressor == "" {
			continue
		}
		g := group{Title: of.title, Rated: r.Watched != nil}
		for _, c := range of.list {
			line := row{Label: c.label, Value: grouped(c.of(s))}
			if r.Watched != nil {
				line.Rate = rate(c.of(&r.Watched.Stats), r.Watched.Seconds)
			}
			g.Rows = append(g.Rows, line)
		}
		groups = append(groups, g)
	}
	size := func(n uint64) string { return byteCount(n).String() }
	return append(groups,
		group{Title: "Memory", Rows: []row{
			{Label: "limit", Value: size(s.MaxBytesSize)},
			{Label: "limit in force", Value: size(s.EffectiveMaxBytes)},
			{Label: "held", Value: size(s.ReservedBytes)},
			{Label: "– records of entries", Value: size(s.BytesSize)},
			{Label: "– dead records", Value: size(s.DeadBytes)},
			{Label: "– index", Value: size(s.IndexBytes)},
		}},
		group{Title: "Warm start", Rows: []row{
			{Label: "entries restored from the file", Value: grouped(s.File.RecoveredEntries)},
			{Label: "entries restored from snapshots", Value: grouped(s.RestoredEntries)},
			{Label: "records, files discarded", Value: fmt.Sprintf("%d, %d",
				s.File.DiscardedRecords, s.File.DiscardedFiles)},
		}})
}

// rowsOf returns the settings for the HTML.
func rowsOf(o *settings) []row {
	none := func(d time.Duration) string {
		if d == 0 {
			return "none"
		}
		return d.String()
	}
	text := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	called := map[bool]string{false: "none", true: "a function"}[o.OnRemove]
	return []row{
		{Label: "MaxBytes", Value: fmt.Sprintf("%s (%v)", grouped(uint64(o.MaxBytes)),
			byteCount(o.MaxBytes))},
		{Label: "Policy", Value: o.Policy},
		{Label: "TTL", Value: none(o.TTL)},
		{Label: "TTLJitter", Value: percent(o.TTLJitter)},
		{Label: "RefreshAhead", Value: none(o.RefreshAhead)},
		{Label: "RefreshTimeout", Value: none(o.RefreshTimeout)},
		{Label: "ExpireAfterAccess", Value: none(o.ExpireAfterAccess)},
		{Label: "StaleIfError", Value: none(o.StaleIfError)},
		{Label: "OnRemove", Value: called},
		{Label: "HugePages", Value: o.HugePages},
		{Label: "File", Value: text(o.File)},
		{Label: "Version", Value: fmt.Sprint(o.Version)},
		{Label: "Compressor", Value: text(o.Compressor)},
		{Label: "ExpectedEntries", Value: grouped(uint64(o.ExpectedEntries))},
	}
}

// rate returns the growth of a counter per second.
func rate(n uint64, seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	perSecond := float64(n) / seconds
	if perSecond > 0 && perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return grouped(uint64(perSecond + 0.5))
}

// grouped returns a number with its digits in groups of three.
func grouped(n uint64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
