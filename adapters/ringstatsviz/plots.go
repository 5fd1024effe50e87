package ringstatsviz

import (
	"time"

	"github.com/arl/statsviz"

	"github.com/ringcache/ringcache"
)

// plot is shown of every cache.
type plot struct {
	name   string // one word
	title  string
	info   string
	suffix string // of what the axis shows, behind prefixes such as M
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
		Name:            "ringcache " + cache + " " + p.name, // ringcache.js knows the first word
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

// rate is the growth of a counter in a second.
func rate(name string, counter func(s *ringcache.Stats) uint64) series {
	return series{name, func(s *sampler) float64 { return s.rate(counter) }}
}

// level is a gauge as it is.
func level(name string, gauge func(s *ringcache.Stats) uint64) series {
	return series{name, func(s *sampler) float64 { return float64(gauge(&s.stats)) }}
}

// seconds is the age of a ring.
func seconds(name string, age func(z *ringcache.Sizing) time.Duration) series {
	return series{name, func(s *sampler) float64 { return age(&s.sizing).Seconds() }}
}

// plots are all that is shown of a cache.
var plots = []plot{
	{
		name:   "ratio",
		title:  "hit ratio",
		info:   "The fraction of the lookups since the last update that found their key.",
		suffix: "%", format: "%{y:.1f} %",
		series: []series{{"hit ratio", func(s *sampler) float64 { return 100 * s.ratio }}},
	}, {
		name:  "operations",
		title: "operations a second",
		info: "Lookups that found their key and those that did not, calls that set or delete a " +
			"key, values that were not stored, loads that GetOrLoad and similar methods " +
			"started, and loads that failed.",
		format: "%{y:.4s}/s",
		series: []series{
			rate("hits", hits),
			rate("misses", func(s *ringcache.Stats) uint64 { return s.Misses }),
			rate("sets", func(s *ringcache.Stats) uint64 { return s.SetCalls }),
			rate("refused", func(s *ringcache.Stats) uint64 {
				return s.Refused.TooLarge + s.Refused.NoMemory + s.Refused.TTLTooShort + s.Refused.Closed
			}),
			rate("deletes", func(s *ringcache.Stats) uint64 { return s.DelCalls }),
			rate("loads", func(s *ringcache.Stats) uint64 { return s.Loads.Started }),
			rate("load errors", func(s *ringcache.Stats) uint64 { return s.Loads.Errors }),
		},
	}, {
		name:  "memory",
		title: "memory",
		info: "Memory outside the Go heap: the bound on it; the bound in force, which is lower " +
			"while the operating system refuses memory; the memory that the cache holds; and the " +
			"parts of it that entries, dead entries (replaced, deleted or expired) and the index " +
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
		title: "evictions a second, by cause",
		info: "Entries that left the small ring because they had not been read in it, that left " +
			"the main ring or the cold part, that the index had no place for, and that had " +
			"expired.",
		format: "%{y:.4s}/s",
		series: []series{
			rate("small", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedSmall }),
			rate("main", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedMain }),
			rate("cold", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedCold }),
			rate("crowd", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedCrowd }),
			rate("expired", func(s *ringcache.Stats) uint64 { return s.ExpiredEntries }),
		},
	}, {
		name:  "bytes",
		title: "bytes moved and dropped a second",
		info: "Bytes of entries that were copied within the cache to keep them, that were " +
			"evicted to make room, and that had expired.",
		suffix: "B/s", format: "%{y:.4s}B/s",
		series: []series{
			rate("moved", func(s *ringcache.Stats) uint64 { return s.Policy.MovedBytes }),
			rate("evicted", func(s *ringcache.Stats) uint64 { return s.EvictedBytes }),
			rate("expired", func(s *ringcache.Stats) uint64 { return s.ExpiredBytes }),
		},
	}, {
		name:  "policy",
		title: "promotions and near misses a second",
		info: "Entries that moved from the small ring to the main ring, that stayed in the main " +
			"ring for another round, and that were set again soon after they had been evicted. " +
			"Lookups that missed such an entry: a larger cache would have found most of them. " +
			"And lookups that found their key in the cold part.",
		format: "%{y:.4s}/s",
		series: []series{
			rate("promotions", func(s *ringcache.Stats) uint64 { return s.Policy.Promotions }),
			rate("reinsertions", func(s *ringcache.Stats) uint64 { return s.Policy.Reinsertions }),
			rate("ghost hits", func(s *ringcache.Stats) uint64 { return s.Policy.GhostHits }),
			rate("near misses", func(s *ringcache.Stats) uint64 { return s.Policy.NearMisses }),
			rate("cold hits", func(s *ringcache.Stats) uint64 { return s.Compression.ColdHits }),
		},
	}, {
		name:  "ages",
		title: "how long entries stay",
		info: "How long entries stay in the small ring, and in the main ring, before they are " +
			"evicted, unless they are read. 0 means that it is not known yet. A cache is too " +
			"small if entries would be read later than that.",
		suffix: "s", format: "%{y:.4s}s",
		series: []series{
			seconds("small", func(z *ringcache.Sizing) time.Duration { return z.SmallAge }),
			seconds("main", func(z *ringcache.Sizing) time.Duration { return z.MainAge }),
		},
	}, {
		name:  "entries",
		title: "entries",
		info: "Entries in the cache, including expired ones that have not been removed yet, and " +
			"evicted entries whose keys are still remembered.",
		format: "%{y:.4s}",
		series: []series{
			level("entries", func(s *ringcache.Stats) uint64 { return s.EntriesCount }),
			level("cold", func(s *ringcache.Stats) uint64 { return s.Compression.ColdEntries }),
			level("ghosts", func(s *ringcache.Stats) uint64 { return s.Policy.Ghosts }),
		},
	},
}

// hits returns the lookups that found their key. The two counts are not of the same
// instant, so there may seem to be more misses than lookups.
func hits(s *ringcache.Stats) uint64 {
	return s.GetCalls - min(s.Misses, s.GetCalls)
}
