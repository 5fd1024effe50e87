package persist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// While a walk stands between two records, the first one does not grow over the second, which is
// dead: the walk would go on inside a value, take its bytes for records, and miss others.
func TestSnapshot_WalkIsNotInsideARecord(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 256))
	const n, size = 600, 1000
	key := func(id int) []byte { return fmt.Appendf(nil, "%06d", id) }
	for id := range n {
		require.NoError(t, c.Set(key(id), make([]byte, size)))
	}
	forged := make([]byte, size-10) // it begins where the next record began, and seems to be longer
	var header [record.MaxHeader]byte
	copy(forged, record.Plain.Put(&header, record.Value, 4, 20*size, record.Times{}))
	s, end := testhook.Saver(t.Context(), c, nil)
	defer end()
	var b bytes.Buffer
	s.To = &b
	grown := 0
	walker := s.Walker
	s.Walker = func(w *snapshot.Worker) snapshot.Step {
		step := walker(w)
		return func(part, quarter int) (bool, error) {
			done, err := step(part, quarter)
			if w.Saved == 0 {
				return done, err
			}
			id, err2 := strconv.Atoi(string(w.Bytes[len(w.Bytes)-size-6 : len(w.Bytes)-size]))
			// The record at which the step has ended. One that has grown is at the head of the ring.
			if err2 == nil && id+1 < n && c.Del(key(id+1)) {
				grown++
				v := append(make([]byte, size), forged...)
				require.NoError(t, c.Set(key(id), v))
			}
			return done, err
		}
	}
	require.NoError(t, s.Run(1))
	got := entriesOf(t, b.Bytes())
	for id := range n {
		require.True(t, !c.Has(key(id)) || got[string(key(id))].times > 0, "%d", id)
	}
	require.Greater(t, grown, 3, "the test proves nothing")
	require.NoError(t, ringtest.Validate(c))

	// Later it may grow.
	end()
	before := ringtest.StatsOf(c).DeadBytes
	require.True(t, c.Del(key(1)))
	require.NoError(t, c.Set(key(0), make([]byte, size+10)))
	require.Less(t, ringtest.StatsOf(c).DeadBytes, before+2*size)
}

// A walk ends although each step finds more records than it copies, and saves what was there all
// the time.
func TestSnapshot_WalkEndsUnderSets(t *testing.T) {
	g := ringtest.Tiny(1, 4096, 256)
	c := ringtest.MustCache(t, g)
	kept := func(id int) []byte { return fmt.Appendf(nil, "kept %d", id) }
	for id := range 200 {
		require.NoError(t, c.Set(kept(id), make([]byte, 1000)))
		c.Has(kept(id))
	}
	steps, id := 0, uint32(0)
	b := saveSteps(t, c, false, func() {
		steps++
		for range 150 { // 150 KB
			id++
			require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, 1000)))
		}
		for id := range 200 {
			c.Has(kept(id))
			c.Has(kept(id))
		}
	})
	require.Less(t, steps, 1000)
	got, there := entriesOf(t, b), 0
	for id := range 200 {
		if c.Has(kept(id)) {
			there++
			require.NotZero(t, got[string(kept(id))].times, "%d of %d steps", id, steps)
		}
	}
	require.Greater(t, there, 100, "the test proves nothing")
}

// Nor does a step copy more than others once it is clear that the walk would not end otherwise.
func TestSnapshot_StepsOfALateWalkAreSmall(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 256))
	ringtest.FillCache(t, c, 0, 20_000, 100)
	id, steps := uint32(20_000), 0
	saveObserved(t, c, nil, func(step snapshot.Step, w *snapshot.Worker) snapshot.Step {
		return func(part, quarter int) (bool, error) {
			done, err := step(part, quarter)
			require.LessOrEqual(t, w.Saved, store.StepBytes)
			steps++
			for range 1500 { // more than it copies
				id++
				require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, 100)))
			}
			return done, err
		}
	})
	require.Greater(t, steps, 8, "the test proves nothing")
}

// A late step notes the keys of a few records only if the keys are long.
func TestSnapshot_LongKeysOfALateWalk(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 64<<10, 256))
	const keyLen = 60_000
	key := make([]byte, keyLen)
	set := func(n int) {
		for range n {
			binary.LittleEndian.PutUint64(key, binary.LittleEndian.Uint64(key)+1)
			require.NoError(t, c.Set(key, nil))
		}
	}
	set(300)
	all := 0
	saveObserved(t, c, nil, func(step snapshot.Step, w *snapshot.Worker) snapshot.Step {
		return func(part, quarter int) (bool, error) {
			done, err := step(part, quarter)
			require.LessOrEqual(t, w.Saved, store.StepBytes+2*keyLen)
			all += w.Saved
			set(4) // more than a step copies
			return done, err
		}
	})
	require.Greater(t, all, 100*keyLen, "the test proves nothing")
}

// Of two values in a snapshot, the later one is loaded, of small records and large ones. A cache
// that others know keeps what it has, but not two values.
func TestSnapshot_LaterRecordIsLoaded(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(256<<20))
	const n = 2000
	value := func(id, version int) []byte {
		size := 50 + version
		if id%50 == 0 {
			size = 70_000 + version // in a large bucket
		}
		return ringtest.Stamp{ID: uint32(id), Version: uint64(version), Size: size}.Value(nil)
	}
	set := func(version int) {
		for id := range n {
			if id%10 < 3 {
				require.NoError(t, c.Set(ringtest.TrafficKey(nil, uint32(id)), value(id, version)))
			}
		}
	}
	for id := range n {
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, uint32(id)), value(id, 1)))
		if id%10 >= 3 {
			require.NoError(t, c.Set(ringtest.TrafficKey(nil, uint32(id)), make([]byte, 100)))
		}
	}
	version, quarters := 1, 0
	s, end := testhook.Saver(t.Context(), c, nil)
	defer end()
	var b bytes.Buffer
	s.To = &b
	walker := s.Walker
	s.Walker = func(w *snapshot.Worker) snapshot.Step {
		step := walker(w)
		return func(part, quarter int) (bool, error) {
			if quarter > quarters { // after each quarter, all have other values
				quarters = quarter
				version++
				set(version)
			}
			return step(part, quarter)
		}
	}
	require.NoError(t, s.Run(1))
	twice := 0
	for _, e := range entriesOf(t, b.Bytes()) {
		if e.times > 1 {
			twice++
		}
	}
	require.Greater(t, twice, n/20, "the test proves nothing")
	path := ringtest.WriteFile(t, b.Bytes())
	loaded := ringtest.MustLoad(t, path)
	into := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	_, err := into.ReadSnapshot(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.NoError(t, ringtest.Validate(into))
	last := entriesOf(t, b.Bytes())
	for id := range n {
		k := ringtest.TrafficKey(nil, uint32(id))
		v, ok := loaded.HasGet(nil, k)
		require.True(t, ok)
		require.True(t, string(v) == last[string(k)].value, "key %d", id)
		require.True(t, into.Has(k))
	}
	require.Equal(t, n, loaded.Len())
	require.Equal(t, n, into.Len())
	require.Zero(t, ringtest.StatsOf(loaded).EvictedEntries)
}

// A time to live loses nothing when it goes through snapshots: a loaded cache continues the clock.
func TestSnapshot_TimesToLiveStay(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	k := []byte("k")
	require.NoError(t, c.SetWithTTL(k, []byte("v"), time.Hour))
	start := time.Now()
	first, ok := c.TTL(k)
	require.True(t, ok)
	for range 20 {
		_, path := ringtest.SnapshotOf(t, c)
		c = ringtest.MustLoad(t, path)
	}
	last, ok := c.TTL(k)
	require.True(t, ok)
	require.LessOrEqual(t, last, first)
	lost := first - last - time.Since(start)
	require.Less(t, lost, clock.Tick, "of 20 snapshots")

	d := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes)) // whose clock is another one
	_, path := ringtest.SnapshotOf(t, c)
	_, err := d.ReadSnapshot(bytes.NewReader(ringtest.ReadFile(t, path)))
	require.NoError(t, err)
	left, ok := d.TTL(k)
	require.True(t, ok)
	require.LessOrEqual(t, left, last+time.Millisecond) // clocks are not read at the same instant
	require.Less(t, last-left-time.Since(start), 2*clock.Tick)
}

// The terms of a loaded cache hold on other machines too: an entry never lives longer than it was
// to, whatever the wall clocks say, and those of which that is not known are left out.
func TestSnapshot_ClocksOfOtherMachines(t *testing.T) {
	saver := ringtest.NewFakeMachine()
	g := ringtest.Default(ringtest.MinBytes)
	g.Machine = saver.Machine()
	c := ringtest.MustCache(t, g)
	saver.Pass(1234567 * time.Millisecond)
	require.NoError(t, c.SetWithTTL([]byte("minute"), nil, time.Minute))
	require.NoError(t, c.SetWithTTL([]byte("never"), nil, 0))
	b, _ := ringtest.SnapshotOf(t, c)
	for _, after := range []time.Duration{-time.Second, 0, time.Millisecond, 30 * time.Second,
		time.Minute - 1, time.Minute, time.Hour} {
		other := ringtest.NewFakeMachine()
		other.Reboot(0)
		other.Wall = saver.Wall.Add(after)
		g.Machine = other.Machine()
		d := ringtest.MustCache(t, g)
		other.Pass(7777777 * time.Microsecond) // the age of the clock when it reads
		other.Wall = saver.Wall.Add(after)
		_, err := d.ReadSnapshot(bytes.NewReader(b))
		require.NoError(t, err)
		require.True(t, d.Has([]byte("never")), after)
		left, ok := d.TTL([]byte("minute"))
		require.Equal(t, 0 <= after && after < time.Minute-2*clock.Tick, ok, after)
		if ok {
			require.LessOrEqual(t, left, time.Minute-after)
			require.Greater(t, left, time.Minute-after-3*clock.Tick)
		}
	}
}

// What a block costs is in proportion to its records, whatever the cache holds: a small bucket is
// locked a few times for a thousand of them, or once for each if it has no room to append to.
func TestSnapshot_HostileBlockCostsItsLength(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	require.NoError(t, c.Set([]byte("large"), make([]byte, ringtest.Shared(c).MaxValue())))
	var block snapshot.Block
	block.Reset()
	const records = 200_000
	for range records { // all of the same key
		block.Begin(policy.Main)
		block.Bytes = append(block.Bytes, 1, 0, 0, 'k')
		block.End(0)
	}
	h := snapshot.Header{MaxBytes: 1 << 25}
	body := block.Finish(snapshot.BlockHeader{Kind: 1, Quarter: 1}, h.Salt)
	require.Less(t, len(body), 60_000)
	b := append(h.Append(nil), body...)
	b = (&snapshot.End{Blocks: 1, Records: records}).Append(b, &h)
	before := writesOf(c)
	allocs := testing.AllocsPerRun(1, func() { // reads it twice
		_, err := c.ReadSnapshot(bytes.NewReader(b))
		require.NoError(t, err)
	})
	require.Less(t, writesOf(c)-before, uint64(2*(records+records/20)))
	require.Less(t, allocs, 1000.0)
	require.Equal(t, 2, c.Len())
}

// A snapshot has the records of a bucket together, so that a cache with the same hash secret locks
// a bucket a few times for a thousand of them.
func TestReadSnapshot_LocksABucketForManyRecords(t *testing.T) {
	g := ringtest.Default(32 << 20)
	g.Seed = ringtest.TestSeed
	c, d := ringtest.MustCache(t, g), ringtest.MustCache(t, g)
	const records = 100_000
	for i := range uint64(records) {
		require.NoError(t, c.Set(binary.LittleEndian.AppendUint64(nil, i), nil))
	}
	b, _ := ringtest.SnapshotOf(t, c)
	before := writesOf(d)
	_, err := d.ReadSnapshot(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, records, d.Len())
	require.Less(t, writesOf(d)-before, uint64(records/20))
}
