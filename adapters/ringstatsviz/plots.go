package ringstatsviz

import (
	"github.com/arl/statsviz"

	"github.com/ringcache/ringcache"
)

// plot is one of the plots of every cache.
type plot struct {
	name   string // one word
	title  string
	info   string
	suffix string // unit of the axis, shown after prefixes such as M
	format string // of a value under the mouse
	series []series
}

type series struct {
	name  string
	value func(s *sampler) float64
}

// config returns the plot of a cache.
func (p plot) config(cache string, s *sampler) statsviz.TimeSeriesPlotConfig {
	c := statsviz.TimeSeriesPlotConfig{
		Name:            "ringcache " + cache + " " + p.name, // ringcache.js looks for the first word
		Title:           cache + ": " + p.title,
		InfoText:        p.info,
		YAxisTickSuffix: p.suffix,
	}
	for _, line := range p.series {
		c.Series = append(c.Series, statsviz.TimeSeries{
			Name:     line.name,
			Unitfmt:  p.format,
			HoverOn:  statsviz.HoverOnPoints,
			GetValue: s.series(line.value),
		})
	}
	return c
}

// rate is the growth of a counter per second.
func rate(name string, counter func(s *ringcache.Stats) uint64) series {
	return series{name, func(s *sampler) float64 { return s.rate(counter) }}
}

// level is a gauge as it is.
func level(name string, gauge func(s *ringcache.Stats) uint64) series {
	return series{name, func(s *sampler) float64 { return float64(gauge(&s.stats)) }}
}

// plots are the plots of a cache.
var plots = []plot{
	{
		name:   "ratio",
		title:  "hit ratio",
		info:   "The fraction of the lookups since the last update that found their key.",
		suffix: "%", format: "%{y:.1f} %",
		series: []series{{"hit ratio", func(s *sampler) float64 { return 100 * s.ratio }}},
	}, {
		name:  "operations",
		title: "operations per second",
		info: "Lookups that found their key and those that did not, calls that set or delete a " +
			"key, values that were not stored, loads that GetOrLoad and similar methods " +
			"started, and loads that failed.",
		format: "%{y:.4s}/s",
		series: []series{
			rate("hits", hits),
			rate("misses", func(s *ringcache.Stats) uint64 { return s.Misses }),
			rate("sets", func(s *ringcache.Stats) uint64 { return s.SetCalls }),
			rate("refused", func(s *ringcache.Stats) uint64 {
				return s.Refused.TooLarge + s.Refused.NoMemory + s.Refused.TTLTooShort
			}),
			rate("deletes", func(s *ringcache.Stats) uint64 { return s.DelCalls }),
			rate("loads", func(s *ringcache.Stats) uint64 { return s.Loads.Started }),
			rate("load errors", func(s *ringcache.Stats) uint64 { return s.Loads.Errors }),
		},
	}, {
		name:  "memory",
		title: "memory",
		info: "Memory outside the Go heap: its limit; the limit in force, which is lower while the " +
			"operating system refuses memory; the memory that the cache holds; and the parts of it " +
			"that entries, dead entries (replaced, deleted, invalidated or expired) and the index " +
			"occupy.",
		suffix: "B", format: "%{y:.4s}B",
		series: []series{
			level("limit", func(s *ringcache.Stats) uint64 { return s.MaxBytesSize }),
			level("in force", func(s *ringcache.Stats) uint64 { return s.EffectiveMaxBytes }),
			level("in use", func(s *ringcache.Stats) uint64 { return s.ReservedBytes }),
			level("entries", func(s *ringcache.Stats) uint64 { return s.BytesSize }),
			level("dead", func(s *ringcache.Stats) uint64 { return s.DeadBytes }),
			level("index", func(s *ringcache.Stats) uint64 { return s.IndexBytes }),
		},
	}, {
		name:  "evictions",
		title: "evictions per second",
		info: "Entries that were evicted to make room; misses of keys that had been evicted lately, " +
			"most of which a larger cache would have found; entries that had expired; and lookups " +
			"that found their key in the cold part.",
		format: "%{y:.4s}/s",
		series: []series{
			rate("evicted", func(s *ringcache.Stats) uint64 { return s.EvictedEntries }),
			rate("misses of evicted keys", func(s *ringcache.Stats) uint64 { return s.EvictedMisses }),
			rate("expired", func(s *ringcache.Stats) uint64 { return s.ExpiredEntries }),
			rate("cold hits", func(s *ringcache.Stats) uint64 { return s.Compression.ColdHits }),
		},
	}, {
		name:   "bytes",
		title:  "bytes evicted per second",
		info:   "Bytes of entries that were evicted to make room.",
		suffix: "B/s", format: "%{y:.4s}B/s",
		series: []series{
			rate("evicted", func(s *ringcache.Stats) uint64 { return s.EvictedBytes }),
		},
	}, {
		name:  "entries",
		title: "entries",
		info: "Entries in the cache, including expired ones that have not been removed yet, and " +
			"those of them in the cold part.",
		format: "%{y:.4s}",
		series: []series{
			level("entries", func(s *ringcache.Stats) uint64 { return s.EntriesCount }),
			level("cold", func(s *ringcache.Stats) uint64 { return s.Compression.ColdEntries }),
		},
	},
}

// hits returns the lookups that found their key. Between two updates there may be more misses than
// lookups: a lookup may be counted before it is known to be a miss.
func hits(s *ringcache.Stats) uint64 {
	return s.GetCalls - min(s.Misses, s.GetCalls)
}
