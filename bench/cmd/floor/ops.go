package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/measure"
)

const (
	keyBytes  = 16
	batchKeys = 64
	mostWalk  = 1 << 30 // beyond that, memory takes what 1 GB takes
)

// scale is a cache with so many entries of keyBytes + value bytes.
type scale struct{ entries, value int }

func (s scale) bytes() int { return s.entries * (keyBytes + s.value) }

// parseScales reads scales such as 8192x100.
func parseScales(list string) ([]scale, error) {
	var scales []scale
	for _, text := range strings.Split(list, ",") {
		entries, value, ok := strings.Cut(text, "x")
		n, err1 := strconv.Atoi(entries)
		v, err2 := strconv.Atoi(value)
		if !ok || err1 != nil || err2 != nil || n < 1000 || v < 8 || v > 1<<16 {
			return nil, fmt.Errorf(
				"-ops %q: want entries x bytes of a value, such as 8192x100, at least 1000x8", text)
		}
		scales = append(scales, scale{n, v})
	}
	return scales, nil
}

// waits is what a cache line takes at a scale: of the index and of the records,
// if it is waited for, and if it is one of many under way.
type waits struct{ index, record figures }

// operation is what is timed, and how long memory lets it take at the least.
type operation struct {
	name  string
	times int // keys that one call is for
	call  func(b *bench)
	floor func(w waits, lines float64) float64
}

// newKey is the operation that needs a full cache.
const newKey = "Set, new key, full"

var operations = []operation{
	{"Get", 1, (*bench).get,
		func(w waits, _ float64) float64 { return w.index.dependent.Median + w.record.dependent.Median }},
	{"Get, absent", 1, (*bench).miss,
		func(w waits, _ float64) float64 { return w.index.dependent.Median }},
	{"GetBatch of 64, per key", batchKeys, (*bench).batch, func(w waits, lines float64) float64 {
		return w.index.independent.Median + lines*w.record.independent.Median
	}},
	{"Set, same size", 1, (*bench).overwrite,
		func(w waits, _ float64) float64 { return w.index.dependent.Median + w.record.dependent.Median }},
	{newKey, 1, (*bench).fresh, func(w waits, _ float64) float64 { return w.index.dependent.Median }},
}

// bench is a cache that holds all entries of a scale, and what calls need.
type bench struct {
	scale
	cache      *ringcache.Cache
	rnd        load.Rand
	next       uint64 // key that was never set
	key, value []byte
	buf        []byte
	keys, vals [][]byte
	calls      int
	missed     int
}

func newBench(s scale) (*bench, error) {
	b := &bench{
		scale: s,
		cache: ringcache.New(s.bytes()*5/4 + s.entries*40 + 32<<20),
		rnd:   load.NewRand(uint64(s.entries)),
		next:  uint64(s.entries),
		key:   make([]byte, keyBytes),
		value: make([]byte, s.value),
		buf:   make([]byte, 0, batchKeys*s.value),
		vals:  make([][]byte, batchKeys),
	}
	for range batchKeys {
		b.keys = append(b.keys, make([]byte, keyBytes))
	}
	for i := range uint64(s.entries) {
		if err := b.cache.Set(b.keyOf(b.key, i), b.value); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bench) keyOf(k []byte, i uint64) []byte {
	binary.LittleEndian.PutUint64(k, i)
	return k
}

func (b *bench) draw() uint64 { return b.rnd.Below(uint64(b.entries)) }

func (b *bench) found(ok bool) {
	b.calls++
	if !ok {
		b.missed++
	}
}

func (b *bench) get() {
	_, ok := b.cache.HasGet(b.buf, b.keyOf(b.key, b.draw()))
	b.found(ok)
}

func (b *bench) miss() {
	_, ok := b.cache.HasGet(b.buf, b.keyOf(b.key, 1<<40+b.draw()))
	b.found(!ok)
}

func (b *bench) batch() {
	for _, k := range b.keys {
		b.keyOf(k, b.draw())
	}
	_, hits := b.cache.GetBatch(b.buf, b.keys, b.vals)
	b.found(hits == len(b.keys))
}

func (b *bench) overwrite() { b.found(b.cache.Set(b.keyOf(b.key, b.draw()), b.value) == nil) }

func (b *bench) fresh() {
	b.next++
	b.found(b.cache.Set(b.keyOf(b.key, b.next), b.value) == nil)
}

// fill stores new keys until entries are evicted.
func (b *bench) fill() {
	for evicted := uint64(0); evicted < uint64(b.entries/8); {
		for range b.entries / 4 {
			b.fresh()
		}
		var s ringcache.Stats
		b.cache.UpdateStats(&s)
		evicted = s.EvictedEntries
	}
}

// time returns the nanoseconds that an operation takes for a key.
func (b *bench) time(op operation, d time.Duration) float64 {
	const some = 64
	n, start := 0, time.Now()
	for time.Since(start) < d {
		for range some {
			op.call(b)
		}
		n += some * op.times
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

// opRow is an operation at a scale.
type opRow struct {
	scale
	op    operation
	took  measure.Summary
	floor float64
}

// operate times all operations at a scale.
func (o *options) operate(ctx context.Context, s scale) ([]opRow, error) {
	b, err := newBench(s)
	if err != nil {
		return nil, err
	}
	defer b.cache.Close()
	var st ringcache.Stats
	b.cache.UpdateStats(&st)
	var w waits
	if w.index, err = o.walk(min(int(st.IndexBytes), mostWalk), false); err != nil {
		return nil, err
	}
	if w.record, err = o.walk(min(s.bytes(), mostWalk), false); err != nil {
		return nil, err
	}
	lines := float64(keyBytes+s.value)/lineBytes + 1
	var rows []opRow
	for _, op := range operations {
		if op.name == newKey {
			b.fill()
		}
		b.calls, b.missed = 0, 0
		b.time(op, o.duration/4)
		var took []float64
		for range o.rounds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took = append(took, b.time(op, 4*o.duration))
		}
		if b.missed > b.calls/1000 { // a cache may forget
			return nil, fmt.Errorf("%s: %d of %d calls went wrong", op.name, b.missed, b.calls)
		}
		rows = append(rows, opRow{s, op, measure.Summarize(took), op.floor(w, lines)})
	}
	return rows, nil
}

// operationsTable writes how far from their floor operations are.
func operationsTable(b *bytes.Buffer, rows []opRow) {
	b.WriteString(
		"\nOperations of ringcache on one core, nanoseconds for a key, and what they wait for at the " +
			"least on 4 KB pages: a Get and a\n" +
			"Set over a value, a line of the index and then one of the record; a miss and a new key, a " +
			"line of the index; in a batch, all\n" +
			"lines, many at once.\n\n")
	b.WriteString("| entries | value | operation | ns | floor | times |\n|--:|--:|---|--:|--:|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| %d | %d | %s | %s | %.0f | %.1f |\n", r.entries, r.value, r.op.name,
			text(r.took), r.floor, r.took.Median/r.floor)
	}
}
