package hitratio

import (
	"container/list"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// sized is a small recorded trace; key 0 changes its size.
func sized() *trace.Trace {
	return &trace.Trace{
		Name:   "sized",
		Keys:   4,
		Sized:  true,
		Copies: 1,
		Requests: []trace.Request{
			{Key: 0, Size: 100}, {Key: 1, Size: 200}, {Key: 0, Size: 150}, {Key: 2, Size: 300}, {Key: 3},
			{Key: 1, Size: 200},
		},
	}
}

// fake is a store that holds everything, refuses large values, and may return others.
type fake struct {
	m     map[string][]byte
	wrong func(v []byte) []byte // nil: as they were set
}

func (f *fake) Set(k, v []byte) error {
	if len(v) > 250 {
		return errors.New("too large")
	}
	f.m[string(k)] = append([]byte(nil), v...)
	return nil
}

func (f *fake) Get(dst, k []byte) ([]byte, bool) {
	v, ok := f.m[string(k)]
	if f.wrong != nil && ok {
		v = f.wrong(slices.Clone(v))
	}
	return append(dst, v...), ok
}

func (f *fake) Del(k []byte) { delete(f.m, string(k)) }
func (f *fake) Close() error { return nil }

func TestReplayCounts(t *testing.T) {
	base := sized()
	p := Plan{Values: Sized, Stretch: 1, Percent: 100}
	base.Copies = 2
	p.Scale = 2
	p.measure(base)
	r := newReplayer(&p, &fake{m: map[string][]byte{}}, base)
	if err := r.replay(base); err != nil {
		t.Fatal(err)
	}
	const bytes = 100 + 200 + 150 + 300 + leastValue + 200
	want := Counts{Requests: 12, Hits: 4, Bytes: 2 * bytes, HitBytes: 2 * 350, Refused: 2}
	if r.Counts != want {
		t.Errorf("%+v, want %+v", r.Counts, want)
	}
	if held, err := r.held(); err != nil || held != 2*(100+200+leastValue+3*keyBytes) {
		t.Errorf("%d bytes held, error %v", held, err)
	}
}

func TestReplayFindsWrongValues(t *testing.T) {
	base := sized()
	p := Plan{Values: Sized, Stretch: 1, Percent: 100}
	p.measure(base)
	wrong := func([]byte) []byte { return binary.LittleEndian.AppendUint64(nil, 1) }
	r := newReplayer(&p, &fake{m: map[string][]byte{}, wrong: wrong}, base)
	if err := r.replay(base); err == nil {
		t.Fatal("no error")
	}
}

// Of a value with a payload every byte is checked, and its length.
func TestReplayFindsWrongPayloads(t *testing.T) {
	base := sized()
	base.Requests = base.Requests[:3] // one hit, of a value of 100 bytes
	p := Plan{Values: Sized, Stretch: 1, Percent: 100, Payload: "proto"}
	p.measure(base)
	replay := func(wrong func(v []byte) []byte) error {
		r := newReplayer(&p, &fake{m: map[string][]byte{}, wrong: wrong}, base)
		err := r.replay(base)
		if _, heldErr := r.held(); (heldErr == nil) != (err == nil) {
			t.Errorf("replay: %v, held: %v", err, heldErr)
		}
		return err
	}
	if err := replay(nil); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if replay(func(v []byte) []byte { v[i] ^= 1; return v }) == nil {
			t.Errorf("no error with another byte %d", i)
		}
	}
	for n := range 100 {
		if replay(func(v []byte) []byte { return v[:n] }) == nil {
			t.Errorf("no error with the first %d bytes", n)
		}
	}
	if replay(func(v []byte) []byte { return append(v, 0) }) == nil {
		t.Error("no error with a byte more")
	}
	r := newReplayer(&p, &fake{m: map[string][]byte{}}, base)
	if replay(func(v []byte) []byte { return r.value(1, 100) }) == nil {
		t.Error("no error with the value of another key")
	}
}

// updated is a load of which a fifth are updates.
func updated(t *testing.T) (*trace.Trace, *Plan) {
	t.Helper()
	base := start(t, "zipf-0.99", 20_000)
	p := &Plan{Values: Sized, Percent: 30, ValueBytes: 160, Writes: 0.2}
	p.measure(base)
	return base, p
}

// Updates are no requests that count. In a store that loses nothing, a read-through request
// misses if it is the first one of its key, and if the last Set of it was refused.
func TestReplayUpdates(t *testing.T) {
	base, p := updated(t)
	f := &fake{m: map[string][]byte{}}
	r := newReplayer(p, f, base)
	if err := r.replay(base); err != nil {
		t.Fatal(err)
	}
	updates := 0
	for _, n := range r.updates {
		updates += int(n)
	}
	if share := float64(updates) / float64(len(base.Requests)); share < 0.19 || share > 0.21 ||
		int(r.Requests) != len(base.Requests)-updates {
		t.Errorf("%d requests count, %d are updates of %d", r.Requests, updates, len(base.Requests))
	}
	if missed := int(r.Requests - r.Hits); r.Refused == 0 || missed > p.Keys+int(r.Refused) {
		t.Errorf("%d misses of %d keys, %d Sets refused", missed, p.Keys, r.Refused)
	}
	lengths := map[int]bool{}
	for _, v := range f.m {
		lengths[len(v)] = true
		if len(v) < 40 {
			t.Fatalf("a value of %d bytes, less than a quarter of the mean", len(v))
		}
	}
	if len(lengths) < 100 {
		t.Errorf("%d different lengths", len(lengths))
	}
	if _, err := r.held(); err != nil {
		t.Error(err)
	}
}

// stale is a store whose entries keep their first values.
type stale struct{ *fake }

func (s stale) Set(k, v []byte) error {
	if _, there := s.m[string(k)]; there {
		return nil
	}
	return s.fake.Set(k, v)
}

func TestReplayFindsStaleValues(t *testing.T) {
	base, p := updated(t)
	if err := newReplayer(p, stale{&fake{m: map[string][]byte{}}}, base).replay(base); err == nil {
		t.Fatal("no error")
	}
}

// TestRunWithUpdatesOnEveryStore wants the last value of each key from all stores.
func TestRunWithUpdatesOnEveryStore(t *testing.T) {
	base := start(t, "zipf-0.99", 60_000)
	for _, kind := range []string{"", "proto"} {
		p := &Plan{Percent: 30, Values: Sized, ValueBytes: 8000, Writes: 0.3, Payload: kind}
		p.measure(base)
		for _, info := range store.HitRatio {
			o, err := run(Spec{Plan: *p, Store: info.Name, Nominal: int(p.Budget)}, base)
			if err != nil {
				t.Fatal(err)
			}
			if o.Ratio() < 40 || int(o.Requests) > p.Requests*8/10 {
				t.Errorf("%s: %+v", info.Name, o)
			}
		}
	}
}

// modelLRU is an LRU bounded by bytes, as a list of ids from the oldest to the newest.
type modelLRU struct {
	order       *list.List
	at          map[uint64]*list.Element
	bytes       map[uint64]int
	used, bound int64
}

// access reports a hit, or inserts the id.
func (m *modelLRU) access(id uint64, bytes int) bool {
	if e, ok := m.at[id]; ok {
		m.order.MoveToBack(e)
		return true
	}
	m.at[id], m.bytes[id] = m.order.PushBack(id), bytes
	for m.used += int64(bytes); m.used > m.bound; {
		oldest := m.order.Remove(m.order.Front()).(uint64)
		m.used -= int64(m.bytes[oldest])
		delete(m.at, oldest)
	}
	return false
}

// TestLRUIsExact wants the byte-bounded LRU to have the very hits of a model.
func TestLRUIsExact(t *testing.T) {
	src, base := source(t, "zipf-0.9")
	lim := Limits{MinBudget: 1 << 20, MaxCopied: 1_000_000, MaxValue: 200}
	p := mustPlan(t, src, base, 10, Sized, lim)
	o, err := Run(Spec{Plan: *p, Store: "golang-lru", Nominal: int(p.Budget)})
	if err != nil {
		t.Fatal(err)
	}
	model := modelLRU{list.New(), map[uint64]*list.Element{}, map[uint64]int{}, 0, p.Budget}
	hits := int64(0)
	for _, r := range base.Requests {
		id := p.ID(r.Key, 0)
		if model.access(id, p.Weight(id, r.Size)) {
			hits++
		}
	}
	if o.Hits != hits || int(o.Requests) != len(base.Requests) || o.Held != model.used {
		t.Errorf("%+v, want %d hits and %d held", o, hits, model.used)
	}
}

// start returns the first n requests of a load.
func start(t *testing.T, name string, n int) *trace.Trace {
	t.Helper()
	_, base := source(t, name)
	base.Requests = base.Requests[:n]
	base.Keys = 0
	for _, r := range base.Requests {
		base.Keys = max(base.Keys, int(r.Key)+1)
	}
	return base
}

// TestRunOnEveryStore replays a small load and wants hits, and a part of the
// budget held.
func TestRunOnEveryStore(t *testing.T) {
	base := start(t, "zipf-0.99", 150_000)
	p := &Plan{Percent: 30, Values: Sized, ValueBytes: 8000}
	p.measure(base)
	for _, info := range store.HitRatio {
		o, err := run(Spec{Plan: *p, Store: info.Name, Nominal: int(p.Budget)}, base)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.2f %% hits, held %.2f of the budget", info.Name, o.Ratio(),
			float64(o.Held)/float64(p.Budget))
		if o.Requests != int64(p.Requests) || o.Ratio() < 50 || o.Ratio() > 95 ||
			float64(o.Held) < 0.5*float64(p.Budget) {
			t.Errorf("%s: %+v", info.Name, o)
		}
		if info.Exact && o.Held > p.Budget*101/100 {
			t.Errorf("%s holds %d bytes of %d", info.Name, o.Held, p.Budget)
		}
	}
}

// TestRunWithEveryPayload replays a load that is larger than the cache, so that cold parts
// have something to do, on all stores of the comparison.
func TestRunWithEveryPayload(t *testing.T) {
	base := start(t, "zipf-0.7", 150_000)
	for _, kind := range payload.Kinds {
		if _, err := payload.New(kind); err != nil {
			t.Log(err) // a machine with few files
			continue
		}
		p := &Plan{Percent: 60, Values: Sized, ValueBytes: 1600, Payload: kind}
		p.measure(base)
		for _, info := range store.Compressed {
			o, err := run(Spec{Plan: *p, Store: info.Name, Nominal: 64 << 20}, base)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %s: %.2f %% hits, %d bytes held", kind, info.Name, o.Ratio(), o.Held)
			if o.Requests != int64(p.Requests) || o.Ratio() < 20 || o.Held < 32<<20 ||
				o.Held >= p.Footprint {
				t.Errorf("%s, %s: %+v", kind, info.Name, o)
			}
		}
	}
}

// TestMemoryIsNotLessThanHeld replays a trace that takes more memory than the cache: that the
// trace is not needed any more must not count for the store.
func TestMemoryIsNotLessThanHeld(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what is resident")
	}
	p := Plan{Values: Sized, Stretch: 1, Percent: 100, ValueBytes: 1000}
	long := func() *trace.Trace {
		tr := &trace.Trace{Keys: 20_000, Requests: make([]trace.Request, 6_000_000)}
		for i := range tr.Requests {
			tr.Requests[i].Key = uint32(i % tr.Keys)
		}
		return tr
	}
	p.measure(long())
	o, err := run(Spec{Plan: p, Store: "ringcache", Nominal: 64 << 20}, long())
	if err != nil {
		t.Fatal(err)
	}
	if o.Held != p.Footprint || o.Memory < o.Held {
		t.Errorf("%d bytes held of %d, in %d of memory", o.Held, p.Footprint, o.Memory)
	}
}

// TestSearch looks for a target in stores of several natures.
func TestSearch(t *testing.T) {
	const target = 100 << 20
	for _, test := range []struct {
		name  string
		info  store.Info
		held  func(nominal int) int64
		most  int     // replays
		least float64 // of the target
	}{
		{"proportional", store.Info{}, func(n int) int64 { return int64(n) * 3 / 4 }, 2, 0.99},
		{"with a base", store.Info{}, func(n int) int64 { return int64(n)/2 + 20<<20 }, 3, 0.99},
		{"exact", store.Info{}, func(n int) int64 { return int64(n) }, 1, 0.99},
		{"steps", store.Info{Step: 32 << 20}, func(n int) int64 { return int64(n) }, 3, 0.95},
		{"floor", store.Info{Least: 200 << 20}, func(n int) int64 { return int64(n) }, 2, 2},
		{"nothing at first", store.Info{}, func(n int) int64 { return max(0, int64(n)-150<<20) },
			mostReplays, 0.95},
	} {
		s := Search{Store: test.info, Target: target, Tolerance: 0.01, Guess: target}
		replays := 0
		o, err := s.Run(func(nominal int) (*Outcome, error) {
			replays++
			if step := test.info.Step; step > 0 && nominal%step > 0 || nominal < test.info.Least {
				t.Errorf("%s: nominal %d", test.name, nominal)
			}
			return &Outcome{Nominal: nominal, Held: test.held(nominal)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(o.Held) / target; replays > test.most || got < test.least ||
			got > max(1.01, test.least) {
			t.Errorf("%s: %.3f of the target after %d replays", test.name, got, replays)
		}
	}
	s := Search{Target: target, Guess: target}
	if _, err := s.Run(func(int) (*Outcome, error) { return nil, errors.New("failed") }); err == nil {
		t.Error("no error")
	}
}

// TestSearchForMemory wants the memory to be what is searched for.
func TestSearchForMemory(t *testing.T) {
	s := Search{Target: 100 << 20, Memory: true, Tolerance: 0.01, Guess: 100 << 20}
	o, err := s.Run(func(nominal int) (*Outcome, error) {
		return &Outcome{Nominal: nominal, Held: int64(nominal), Memory: 2 * int64(nominal)}, nil
	})
	if err != nil || o.Nominal != 50<<20 {
		t.Errorf("%+v, error %v", o, err)
	}
}
