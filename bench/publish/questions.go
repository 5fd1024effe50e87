package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/objects"
	"github.com/ringcache/ringcache/bench/restart"
	"github.com/ringcache/ringcache/bench/store"
)

// question is one table of the pages.
type question struct {
	name  string // of its block
	title string
	unit  string // of all rows; "": the labels tell
	rows  []row
}

// kind says how the figures of a row are compared.
type kind int

const (
	cost  kind = iota // less is better; each rival has the ratio of ringcache to it
	views             // the same, but each view of ringcache has the ratio to otter
	share             // more is better, without ratios
	noise             // less is better; what an empty process takes as well is not measurable
)

// kinds are those of the metrics that are not a cost.
var kinds = map[string]kind{
	objects.HotNS: views, objects.ZipfNS: views, objects.UniformNS: views, objects.MemoShare: views,
	objects.ResidentBytes: views, objects.GCms: views,
	churn.Found: share, churn.FoundOld: share, churn.Untouched: share, restart.Back: share,
	measure.Hits: share, measure.GCTime: noise,
}

// row is a line of a table: a metric of a load.
type row struct {
	label  string
	load   load
	metric string
	ours   string // the store that is ringcache here; "": ringcache
}

// questions are in the order in which a user asks them.
var questions = []question{
	{name: "reading", title: "Reading", unit: "ns", rows: []row{
		ns(all, "dep-uniform", "each key depends on the last value"),
		ns(few, "dep-zipf", "each key depends on the last value, Zipf"),
		ns(few, "dep-small-zipf", "65,536 small entries, each key depends on the last value, Zipf"),
		ns(few, "get-uniform", "keys known in advance"),
		ns(few, "get-zipf", "keys known in advance, Zipf"),
		ns(two, "get-nil", "without a buffer"),
		ns(two, "get-absent", "absent keys"),
		ns(two, "get-batch", "64 keys at once, per key (fastcache: 64 Gets)"),
		ns(few, "ref-get", "65,536 tiny entries, in order"),
	}},
	{name: "writing", title: "Writing", unit: "ns", rows: []row{
		ns(few, "overwrite", "new values of the same length"),
		ns(few, "set-small", "65,536 small entries, new values of the same length"),
		ns(few, "ref-set", "65,536 tiny entries, in order"),
		ns([]string{us, fifo, "fastcache"}, "set-new", "new keys into a full cache"),
		{"`set-new`, `PolicyFIFO`: new keys into a full cache", load{name: "set-new"},
			measure.NsPerOp, fifo},
		rewriting("values of different lengths", "churn", 0.7, churn.NsWrite),
		rewriting("values of different lengths", "churn", 0.95, churn.NsWrite),
		rewriting("values that grow", "append", 0.7, churn.NsWrite),
		rewriting("a namespace is set again, in others after Dels", "invalidate", 0.8, churn.NsWrite),
		rewriting("deletes, then new keys", "delete-half", 0.72, churn.NsWrite),
	}},
	{name: "kept", title: "Live entries found at the end", rows: []row{
		rewriting("values of different lengths", "churn", 0.7, churn.Found),
		rewriting("values of different lengths", "churn", 0.95, churn.Found),
		rewriting("values that grow", "append", 0.7, churn.Found),
		rewriting("a namespace, while another one is invalidated", "invalidate", 0.8,
			churn.Untouched),
		rewriting("old entries, after deletes and inserts", "delete-half", 0.72, churn.FoundOld),
	}},
	{name: "latency", title: "One call in a full cache", unit: "ns", rows: latencies()},
	{name: "mixed", title: "Reading and writing", unit: "ns", rows: []row{
		ns(all, "mix-zipf", "a Get or a Set, nine to one, Zipf"),
		ns(few, "mix-small", "a Get or a Set, nine to one, Zipf, 65,536 small entries"),
		ns(few, "ref-setget", "a Get or a Set, one to one, 65,536 tiny entries, in order"),
	}},
	{name: "expiring", title: "Entries with a time to live", unit: "ns", rows: []row{
		ns([]string{us, "fastcache", "freecache", otter}, "ttl-dep-uniform",
			"Get, each key depends on the last value"),
		ns(two, "ttl-get-uniform", "Get, keys known in advance"),
		ns(two, "ttl-set", "Set, new values of the same length"),
	}},
	{name: "decoded", title: "Decoded values", rows: of(decoded,
		objects.HotNS, objects.ZipfNS, objects.UniformNS, objects.MemoShare, objects.ResidentBytes,
		objects.GCms)},
	{name: "values", title: "Values from 100 bytes to 100 KB", unit: "ns", rows: []row{
		ns(few, "get-uniform", "Get, 100 bytes"),
		ns(few, "get-1000", "Get, 1,000 bytes"),
		ns(few, "get-10k", "Get, 10,000 bytes"),
		ns(few, "get-100k", "Get, 100,000 bytes"),
		ns(few, "overwrite", "Set, 100 bytes"),
		ns(few, "set-1000", "Set, 1,000 bytes"),
		ns(few, "set-10k", "Set, 10,000 bytes"),
		ns(few, "set-100k", "Set, 100,000 bytes"),
	}},
	{name: "memory", title: "Memory", rows: []row{
		living(all, "live-1", "besides keys and values, bytes an entry", measure.Overhead),
		living(all, "live-10", "besides keys and values, bytes an entry", measure.Overhead),
		rewriting("with a bound of 64 MB, MB", "churn", 0.7, churn.Resident),
		rewriting("with a bound of 64 MB, MB", "churn", 0.95, churn.Resident),
	}},
	{name: "collector", title: "Garbage collection", unit: "ms", rows: []row{
		living(all, "live-1", "one `runtime.GC()`", measure.GCTime),
		living(all, "live-10", "one `runtime.GC()`", measure.GCTime),
	}},
	{name: "others", title: "Other caches", rows: []row{
		ns(others, "dep-uniform", "Get, each key depends on the last value, ns"),
		ns(others, "mix-zipf", "a Get or a Set, nine to one, Zipf, ns"),
		ns(others, "overwrite", "new values of the same length, ns"),
		living(others, "live-10", "besides keys and values, bytes an entry", measure.Overhead),
		living(others, "live-10", "one `runtime.GC()`, ms", measure.GCTime),
	}},
	{name: "afterwards", title: "Workloads chosen afterwards", unit: "ns", rows: []row{
		ns(few, "del-set", "a Del and a Set of the same key"),
		ns(few, "cold-start", "from an empty cache, a Get and, if it misses, a Set, Zipf"),
		pause(measure.Sets, "p50"), pause(measure.Sets, "p99"), pause(measure.Sets, "p99.9"),
		pause(measure.Gets, "p99"), pause(measure.Gets, "p99.9"),
		{"`latency-alloc`: share of the Gets that hit", timed(few, "latency-alloc"), measure.Hits, ""},
	}},
	{name: "restart", title: "Start after a kill", rows: of(restarted, restart.Open, restart.Gets)},
	{name: "back", title: "Entries that are back after a kill",
		rows: of(restarted, restart.Back)},
}

// The rows of the README.
var (
	getRow = named("a Get from 4 M entries; each key depends on the last value, ns", "dep-uniform")
	mixRow = named("a Get or a Set, nine to one, 4 M entries, Zipf, ns", "mix-zipf")
	setRow = named("an overwrite of the same length, 4 M entries at random, ns", "overwrite")

	memoryRow = row{"memory beyond keys and values, 10 M entries, bytes each",
		load{name: "live-10"}, measure.Overhead, ""}
	gcRow = row{"`runtime.GC()` with 10 M entries, ms", load{name: "live-10"}, measure.GCTime, ""}
)

// named is a time of a call of a load that a question has.
func named(label, name string) row { return row{label, load{name: name}, measure.NsPerOp, ""} }

// titles are the names of stores in the pages; the others have their own.
var titles = map[string]string{
	"bigcache": "BigCache", "golang-lru": "LRU", "freelru": "go-freelru", "phuslu": "phuslu/lru",
	fifo: "FIFO", s2: "s2", control: "control",
	objects.TypedStore: "`Typed`", objects.MemoStore: "`Typed` with `codec.Memo`",
	store.Null: "no cache",
}

func title(store string) string { return cmp.Or(titles[store], store) }

func titled(stores []string) (names []string) {
	for _, s := range stores {
		names = append(names, title(s))
	}
	return names
}

// order is that of the columns.
var order = []string{"ringcache", objects.TypedStore, objects.MemoStore, "fastcache", "freecache",
	"bigcache", "otter", "theine", "ristretto", "freelru", "phuslu", store.Null}

// ns is the time of a call.
func ns(stores []string, name, label string) row {
	return row{fmt.Sprintf("`%s`: %s", name, label), timed(stores, name), measure.NsPerOp, ""}
}

// living is a metric of stores that live with their entries, and of a process without any.
func living(stores []string, name, label, metric string) row {
	l := timed(append(slices.Clip(stores), store.Null), name)
	return row{fmt.Sprintf("`%s`: %s", name, label), l, metric, ""}
}

// of are several metrics of a load, under their own names.
func of(l load, metrics ...string) (rows []row) {
	for _, m := range metrics {
		rows = append(rows, row{m, l, m, ""})
	}
	return rows
}

// pause is a latency while the program allocates.
func pause(op, quantile string) row {
	return row{fmt.Sprintf("`latency-alloc`: %s %s while 200 MB a second are allocated", op, quantile),
		timed(few, "latency-alloc"), measure.Quantile(op, quantile), ""}
}

func rewriting(label, name string, live float64, metric string) row {
	return row{fmt.Sprintf("`%s` %v: %s", name, live, label), rewritten(name, live), metric, ""}
}

func latencies() (rows []row) {
	for _, op := range []string{measure.Sets, measure.Gets} {
		for _, m := range measure.Latencies(op) {
			label := "`latency-evict`: " + strings.TrimSuffix(m, " ns")
			rows = append(rows, row{label, timed(two, "latency-evict"), m, ""})
		}
	}
	return append(rows, row{"`latency-evict`: share of the Gets that hit",
		timed(two, "latency-evict"), measure.Hits, ""})
}
