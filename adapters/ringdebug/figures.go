package ringdebug

import (
	"fmt"
	"strings"

	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// group is a table of figures.
type group struct {
	Title string
	Rated bool // rows have rates
	Rows  []row
}

// row is a figure with its label. About explains the label.
type row struct{ Label, About, Value, Rate string }

const coldPart = "Cold part" // shown only if there is a Compressor

// groups are the metrics that the page shows, by their OpenTelemetry names.
var groups = []struct {
	title   string
	metrics []metrics.Metric
}{
	{"Lookups", metrics.Named("lookups", "eviction.misses", "hash.collisions", "corruptions")},
	{"Writes", metrics.Named("sets", "deletes", "refusals")},
	{"Removals", metrics.Named("evictions", "expirations")},
	{"Loads", metrics.Named("loads", "load.errors", "load.drops", "stale.hits", "negative.hits")},
	{coldPart, metrics.Named("cold.hits", "compressed.values", "compressor.errors")},
	{"Memory", metrics.Named("memory.limit", "memory.effective_limit", "memory.usage", "entry.size",
		"dead.usage", "index.usage")},
	{"Warm start", metrics.Named("restorations", "restoration.discards")},
}

// groupsOf returns the figures of a report for the HTML.
func groupsOf(r *report) (all []group) {
	for _, of := range groups {
		if of.title == coldPart && r.Options["Compressor"] == "" {
			continue
		}
		g := group{Title: of.title}
		for _, m := range of.metrics {
			for _, sample := range m.Samples {
				line := row{Label: m.Title(sample), About: m.About, Value: valueOf(m, sample.Value(&r.Stats))}
				if r.Watched != nil && m.Kind == metrics.Counter {
					g.Rated = true
					line.Rate = rate(sample.Value(&r.Watched.Stats), r.Watched.Seconds)
				}
				g.Rows = append(g.Rows, line)
			}
		}
		all = append(all, g)
	}
	return all
}

// valueOf returns a value of a metric in its unit.
func valueOf(m metrics.Metric, v float64) string {
	if m.Unit == "By" {
		return byteCount(v).String()
	}
	return grouped(uint64(v))
}

// rate returns the growth of a counter per second.
func rate(n, seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	perSecond := n / seconds
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
