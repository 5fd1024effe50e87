package model

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// The witness: OnRemove tells what has left a cache, and when. A miss of a key that was not told of
// before the call began is a fault, as is a key that was told of and is found again without a
// write, a reason that is not true, or a counter that does not agree with what was told.
//
// Each run combines random options. Each operation has its own seed, so a run can be repeated with
// some of its operations left out.

var (
	witnessRuns = flag.Int("ringcache.witness", 0, "number of runs of TestModel_Witness; 0: as usual")
	witnessSeed = flag.Uint64("ringcache.witness.seed", 0, "seed of the first run")
	witnessCut  = flag.Bool("ringcache.witness.cut", false, "search for fewer operations that fail")
)

func TestModel_Witness(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	runs, mostBytes := 12, 2<<20
	if *ringtest.LongRun {
		runs, mostBytes = 40, 64<<20
	}
	if testing.Short() {
		runs = 6
	}
	if *witnessRuns > 0 {
		runs = *witnessRuns
	}
	total := ringcache.Stats{}
	for seed := *witnessSeed; seed < *witnessSeed+uint64(runs); seed++ {
		p := drawPlan(seed, mostBytes)
		s, trail, err := runWitness(t, p, p.ops)
		if err != nil && *witnessCut {
			p.ops, trail, err = cutOps(t, p, err)
		}
		if err != nil {
			t.Errorf("seed %d, %v: %v\n%s", seed, p, err, trail)
		}
		total.EvictedEntries += s.EvictedEntries
		total.ExpiredEntries += s.ExpiredEntries
		total.RestoredEntries += s.RestoredEntries
		total.File.RecoveredEntries += s.File.RecoveredEntries
		total.Compression.ColdHits += s.Compression.ColdHits
	}
	if runs >= 24 {
		const little = "the runs prove too little: %+v"
		require.Greater(t, total.EvictedEntries, uint64(1000), little, total)
		require.Greater(t, total.ExpiredEntries, uint64(100), little, total)
		require.Greater(t, total.RestoredEntries, uint64(100), little, total)
		require.Positive(t, total.Compression.ColdHits, little, total)
	}
}

// plan is the random configuration of a run.
type plan struct {
	seed     uint64
	o        ringcache.Options
	inFile   bool
	real     bool // time is real, and the cache is made by the calls that users have
	spaces   int  // namespaces, besides the whole cache
	negative bool // some loads find that there is no value
	sizes    int  // which sizes values have, by witness.size
	keys     int
	ops      []uint64 // a seed for each operation
}

func (p *plan) String() string {
	comp := p.o.Compressor != nil
	return fmt.Sprintf("%d bytes, %v, ttl=%v-%.0f%%, idle=%v, cold=%v, file=%v, real=%v, spaces=%d, "+
		"negative=%v, sizes=%d, keys=%d, %d operations", p.o.MaxBytes, p.o.Policy, p.o.TTL,
		100*p.o.TTLJitter, p.o.ExpireAfterAccess, comp, p.inFile, p.real, p.spaces, p.negative,
		p.sizes, p.keys, len(p.ops))
}

// drawPlan draws the options of a run, and its operations.
func drawPlan(seed uint64, mostBytes int) *plan {
	rnd := ringtest.NewRand(seed * 0x9e3779b97f4a7c15)
	rnd.Uint64()
	p := &plan{seed: seed}
	octaves := math.Log2(float64(mostBytes) / ringtest.LeastMaxBytes)
	p.o.MaxBytes = int(ringtest.LeastMaxBytes * math.Exp2(rnd.Float64()*octaves))
	p.o.Policy = ringcache.Policy(rnd.IntN(2))
	p.real = rnd.IntN(6) == 0
	p.inFile = rnd.IntN(3) == 0 && chunk.OffHeap
	unit := time.Second
	if p.real {
		unit = time.Hour // nothing expires by itself
	}
	if rnd.IntN(2) == 0 {
		p.o.TTL = time.Duration(5+rnd.IntN(60)) * unit
		if rnd.IntN(2) == 0 {
			p.o.TTLJitter = rnd.Float64() * 0.9
		}
	}
	if rnd.IntN(3) == 0 {
		p.o.ExpireAfterAccess = time.Duration(2+rnd.IntN(20))*unit + 50*time.Millisecond
	}
	if rnd.IntN(3) == 0 {
		p.o.Compressor = ringtest.FlateCompressor{}
	}
	if rnd.IntN(4) == 0 {
		p.o.ExpectedEntries = 1 << rnd.IntN(16)
	}
	p.spaces = max(0, rnd.IntN(7)-3)
	p.negative = rnd.IntN(3) == 0
	p.sizes = rnd.IntN(5)
	mean := max(p.meanSize(), p.o.MaxBytes/8000)
	p.keys = 20 + int(float64(p.o.MaxBytes)/float64(mean)*math.Exp2(3*rnd.Float64()-1.5))
	n := min(max(2*p.keys, 2000), 12_000)
	if mostBytes > 4<<20 {
		n = min(max(4*p.keys, 4000), 40_000)
	}
	for range n {
		p.ops = append(p.ops, rnd.Uint64())
	}
	return p
}

// meanSize returns the approximate mean length of a value.
func (p *plan) meanSize() int {
	switch p.sizes {
	case 0:
		return 120
	case 1:
		return 320
	case 2:
		return p.o.MaxBytes / 400
	default:
		return p.o.MaxBytes / 150
	}
}

// runWitness runs operations, and returns the sum of the statistics of its caches, and the last
// operations.
func runWitness(t *testing.T, p *plan, ops []uint64) (sum ringcache.Stats, trail string, err error,
) {
	w := newWitness(t, p)
	defer func() {
		if w.c != nil {
			w.leaveSum()
			_ = w.c.Close()
			ringtest.CollectClosed()
		}
		sum = w.sum
		if err != nil {
			trail = strings.Join(w.trail, "\n")
		}
	}()
	if err := w.open(); err != nil {
		return sum, "", err
	}
	for i, seed := range ops {
		w.pcg.Seed(seed, seed)
		if err := w.step(); err != nil {
			return sum, "", fmt.Errorf("operation %d: %w", i, err)
		}
		if i%1500 == 1499 {
			if err := w.check(); err != nil {
				return sum, "", fmt.Errorf("after operation %d: %w", i, err)
			}
		}
	}
	return sum, "", w.check()
}

// cutOps removes operations while the run still fails.
func cutOps(t *testing.T, p *plan, err error) (ops []uint64, trail string, failure error) {
	ops, failure = p.ops, err
	end := time.Now().Add(20 * time.Second)
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(ops) && time.Now().Before(end); {
			fewer := append(append([]uint64{}, ops[:at]...), ops[at+size:]...)
			if _, tr, err := runWitness(t, p, fewer); err != nil {
				ops, trail, failure = fewer, tr, err
			} else {
				at += size
			}
		}
	}
	return ops, trail, failure
}

// witness is a run: a cache, what it must hold, and what OnRemove has told.
type witness struct {
	t       *testing.T
	p       *plan
	pcg     *rand.PCG
	rnd     *rand.Rand
	machine *ringtest.FakeMachine
	born    time.Time
	dir     string
	trail   []string
	note    string // on the current operation

	c               *ringcache.Cache
	bound           int
	buckets, chunks int // of the cache in the file, or in memory: number and size
	saved           []savedCache
	saves           int // their number so far
	sum             ringcache.Stats

	version uint64
	live    map[entryKey]*entry   // set, and not told of
	dead    map[entryKey][]*entry // of a namespace that was reset, and not told of
	absent  map[entryKey]time.Duration
	counts  []counts // of the whole cache, and of each namespace
	refused ringcache.RefusedStats
	loads   ringcache.LoadStats

	mu        sync.Mutex // guards what OnRemove changes
	on        operation
	complaint error
	telling
}

// entryKey is a key of the whole cache or of a namespace.
type entryKey struct {
	space int // 0: none
	id    uint32
}

// entry is a value, and when it expires: not before soon, and not after late. 0 is never.
type entry struct {
	ringtest.Stamp
	soon, late         time.Duration // by its TTL
	idleSoon, idleLate time.Duration // by the idle time

	// unclear marks an entry of a namespace that was reset, which a snapshot has brought back since:
	// OnRemove was told of one of the two, which have expired, and the other one is left.
	unclear bool
}

// counts are what Stats must have.
type counts struct{ gets, misses, sets, dels uint64 }

func newWitness(t *testing.T, p *plan) *witness {
	w := &witness{t: t, p: p, pcg: rand.NewPCG(p.seed, 1), machine: ringtest.NewFakeMachine(),
		born: time.Now(), dir: t.TempDir(), bound: p.o.MaxBytes}
	if p.o.MaxBytes <= 4<<20 {
		w.dir = ringtest.DirInMemory(t)
	}
	w.rnd = rand.New(w.pcg)
	w.forget()
	return w
}

// forget makes the model that of a new cache.
func (w *witness) forget() {
	w.live, w.dead = map[entryKey]*entry{}, map[entryKey][]*entry{}
	w.absent = map[entryKey]time.Duration{}
	w.startCounts()
}

// startCounts sets the counters to those of a new cache.
func (w *witness) startCounts() {
	w.counts = make([]counts, w.p.spaces+1)
	w.refused, w.loads, w.telling = ringcache.RefusedStats{}, ringcache.LoadStats{}, telling{}
}

// now returns the time by which entries expire.
func (w *witness) now() time.Duration {
	if w.p.real {
		return time.Since(w.born)
	}
	return w.machine.RealTime
}

// path returns the path of the file, or "".
func (w *witness) path() string {
	if !w.p.inFile {
		return ""
	}
	return filepath.Join(w.dir, "cache")
}

// open makes the cache, or opens it again in its file. OnRemove may be called.
func (w *witness) open() error {
	o := w.p.o
	o.MaxBytes, o.OnRemove, o.File = w.bound, w.removed, w.path()
	w.begin(opOpen, entryKey{space: -1})
	defer w.end()
	var err error
	if w.p.real {
		w.c, err = ringcache.NewWithOptions(o)
	} else {
		g := ringtest.Default(w.bound)
		g.Options, g.Machine, g.ByHand = o, w.machine.Machine(), true
		g.Seed = [2]uint64{w.p.seed * 0x9e3779b97f4a7c15, ringtest.TestSeed[1]}
		from := w.machine.RealTime.Truncate(clock.Tick) // as clocks of a process begin
		g.Elapsed = func() time.Duration { return w.machine.RealTime - from }
		w.c, err = openShape(g)
	}
	if err == nil && w.buckets == 0 {
		w.measure()
	}
	return err
}

func openShape(g ringtest.Shape) (*ringcache.Cache, error) {
	if g.File == "" {
		return ringtest.NewCache(g), nil
	}
	return ringtest.Open(g, g.File)
}

// measure notes the shape of the cache, which says how small it may become.
func (w *witness) measure() {
	s := ringtest.Shared(w.c)
	w.buckets, w.chunks = s.Buckets, s.Pool.ChunkSize()
}

// leaveSum adds the statistics of a cache that is about to be closed.
func (w *witness) leaveSum() {
	bound, effective := w.sum.MaxBytesSize, w.sum.EffectiveMaxBytes
	w.c.UpdateStats(&w.sum)
	w.sum.MaxBytesSize, w.sum.EffectiveMaxBytes = bound, effective
}

// check compares everything that the cache holds, and what it says about itself, with the model.
func (w *witness) check() error {
	var errs []error
	errs = append(errs, w.gauges(), ringtest.Validate(w.c))
	for k := range w.live {
		errs = append(errs, w.look(k, lookPeek))
		if len(errs) > 50 {
			break
		}
		if errs[len(errs)-1] == nil {
			errs = errs[:len(errs)-1]
		}
	}
	return errors.Join(errs...)
}
