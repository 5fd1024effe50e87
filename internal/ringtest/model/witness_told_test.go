package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// What OnRemove tells, and whether it may.

// opKind is a kind of operations that may remove entries for the same reasons.
type opKind uint8

const (
	opSilent     opKind = iota // removes nothing
	opLookup                   // may make room for what was in the cold part
	opWrite                    // of one key
	opRewrite                  // Touch
	opDelete                   // of one key
	opBatch                    // of several keys
	opLoad                     // of one or several keys, in a goroutine
	opReset                    // of the whole cache
	opResetSpace               // of a namespace, or one is made
	opExpire                   // DeleteExpired
	opResize                   // or a snapshot is read
	opOpen                     // the cache is made
)

var opKinds = [...]string{"a call that removes nothing", "a lookup", "a write", "Touch", "a delete",
	"a batch", "a load", "Reset", "a namespace's Reset", "DeleteExpired", "Resize or ReadSnapshot",
	"opening"}

// operation is the call under way.
type operation struct {
	kind      opKind
	key       entryKey              // that it is about, in a batch the first; space -1: none
	started   time.Duration         // when
	goroutine string                // that makes the call
	pending   map[entryKey][]*entry // what it stores, in order
	from      map[entryKey]*entry   // what a snapshot has
	told      map[entryKey][]ringcache.RemovalReason
	fromTold  int // entries of the snapshot that have left again
	running   bool
}

// telling is the state of what OnRemove has reported.
type telling struct {
	reasons [ringcache.RemovedReset + 1]uint64
	bytes   uint64 // of keys and values that were evicted
	tooLong uint64 // of these, values that Touch could not write again
	calls   int
	kept    [16]keptRemoval
}

// keptRemoval is a Removal that OnRemove has kept, and a copy.
type keptRemoval struct {
	gone       ringcache.Removal
	key, value string
}

func goroutineID() string {
	var buf [64]byte
	b := buf[:runtime.Stack(buf[:], false)]
	return string(bytes.Fields(b)[1])
}

// begin records the start of a call.
func (w *witness) begin(kind opKind, k entryKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on = operation{kind: kind, key: k, started: w.now(), running: true,
		told: map[entryKey][]ringcache.RemovalReason{}}
	if w.rnd.IntN(8) == 0 {
		w.on.goroutine = goroutineID()
	}
}

// end records its return.
func (w *witness) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on.running = false
}

// removed is OnRemove.
func (w *witness) removed(gone ringcache.Removal) {
	w.mu.Lock()
	k, err := w.depart(gone)
	inCall := w.on.goroutine
	w.calls++
	look := err == nil && w.calls%16 == 0 && w.c != nil && w.live[k] == nil &&
		len(w.on.pending[k]) == 0 && w.on.kind < opBatch && k != w.on.key
	if err == nil && inCall != "" && w.on.kind != opLoad && goroutineID() != inCall {
		err = fmt.Errorf("in another goroutine than that of the call")
	}
	w.complain(gone, err)
	w.mu.Unlock()
	if look { // no lock is held
		if c := w.cacheOf(k.space); c != nil {
			if _, ok := c.Peek(nil, gone.Key); ok {
				w.complain(gone, fmt.Errorf("key %v is still found", k))
			}
		}
	}
}

// complain keeps the first fault of what OnRemove tells.
func (w *witness) complain(gone ringcache.Removal, err error) {
	if err != nil && w.complaint == nil {
		w.complaint = fmt.Errorf("OnRemove is told in %s of %d bytes in %q, %v: %w",
			opKinds[w.on.kind], len(gone.Value), gone.Namespace, gone.Reason, err)
	}
}

// depart checks what OnRemove tells, and takes the entry out of the model.
func (w *witness) depart(gone ringcache.Removal) (k entryKey, err error) {
	kept := &w.kept[w.calls%len(w.kept)]
	if kept.key != string(kept.gone.Key) || kept.value != string(kept.gone.Value) {
		return k, fmt.Errorf("what it was given earlier has changed")
	}
	*kept = keptRemoval{gone, string(gone.Key), string(gone.Value)}
	if !w.on.running {
		return k, fmt.Errorf("while no call was under way")
	}
	k, ok := w.keyOf(gone.Namespace, gone.Key)
	if !ok {
		return k, fmt.Errorf("there is no key %.40x", gone.Key)
	}
	if int(gone.Reason) >= len(w.reasons) || gone.Reason == 0 {
		return k, fmt.Errorf("there is no such reason")
	}
	w.reasons[gone.Reason]++
	if gone.Reason == ringcache.RemovedEvicted {
		w.bytes += uint64(len(gone.Key) + len(gone.Value))
	}
	e, of := w.take(k, gone.Value, gone.Reason)
	if e == nil {
		is := "none is there"
		if e := w.live[k]; e != nil {
			is = fmt.Sprintf("%v is there", e.Stamp)
		}
		return k, fmt.Errorf("key %v: %s", k, is)
	}
	w.on.told[k] = append(w.on.told[k], gone.Reason)
	if of == ofDead {
		switch {
		case gone.Reason == ringcache.RemovedDeleted,
			gone.Reason == ringcache.RemovedExpired && e.mayBeOver(w.now()),
			w.on.kind == opReset && gone.Reason == ringcache.RemovedReset,
			// The record of the next generation makes room before the old one is forgotten.
			w.on.kind == opResetSpace && gone.Reason == ringcache.RemovedEvicted:
			return k, nil
		case !e.unclear: // else it may be the live one
			return k, fmt.Errorf("key %v was deleted with its namespace", k)
		}
	}
	return k, w.mayLeave(k, e, of, gone.Reason)
}

// origin is where the model had an entry.
type origin uint8

const (
	ofLive origin = iota
	ofPending
	ofDead
	ofSnapshot
)

// take removes the entry with that value from the model. A snapshot may have brought it back since
// its namespace was reset, so that it is there twice.
func (w *witness) take(k entryKey, value []byte, why ringcache.RemovalReason) (*entry, origin) {
	wrote := func(e *entry) bool { return e.Wrote(value) }
	e := w.live[k]
	stays := why == ringcache.RemovedDeleted && k != w.on.key ||
		why == ringcache.RemovedExpired && e != nil && !e.mayBeOver(w.now())
	isDead := stays && slices.ContainsFunc(w.dead[k], wrote)
	if e != nil && e.Wrote(value) && !isDead {
		delete(w.live, k)
		for _, twin := range w.dead[k] {
			twin.unclear = twin.unclear || twin.Wrote(value) // the value does not tell which has left
		}
		return e, ofLive
	}
	if i := slices.IndexFunc(w.on.pending[k], wrote); i >= 0 {
		e := w.on.pending[k][i]
		w.on.pending[k] = slices.Delete(w.on.pending[k], i, i+1)
		return e, ofPending
	}
	loaded := w.on.from[k] != nil && why == ringcache.RemovedEvicted
	if i := slices.IndexFunc(w.dead[k], wrote); i >= 0 && !loaded {
		e := w.dead[k][i]
		if w.dead[k] = slices.Delete(w.dead[k], i, i+1); len(w.dead[k]) == 0 {
			delete(w.dead, k)
		}
		return e, ofDead
	}
	if e := w.on.from[k]; e != nil && e.Wrote(value) {
		w.on.fromTold++
		return e, ofSnapshot
	}
	return nil, 0
}

// mayLeave checks that an entry may leave in this call for that reason.
func (w *witness) mayLeave(k entryKey, e *entry, of origin, why ringcache.RemovalReason) error {
	kind, mine := w.on.kind, k == w.on.key
	late := e.isOver(w.on.started)
	if late && why != ringcache.RemovedExpired && why != ringcache.RemovedReset {
		return fmt.Errorf("key %v has expired at %v, now is %v", k, e.over(), w.on.started)
	}
	switch why {
	case ringcache.RemovedExpired:
		if !e.mayBeOver(w.now()) {
			return fmt.Errorf("key %v lives until %v, now is %v", k, e.over(), w.now())
		}
	case ringcache.RemovedEvicted:
		switch kind {
		case opSilent, opExpire, opReset:
			return fmt.Errorf("key %v, and no room is needed", k)
		case opLookup, opDelete:
			if w.p.o.Compressor == nil {
				return fmt.Errorf("key %v, and no room is needed", k)
			}
		}
		if mine && w.isOutgrown(k, e) {
			w.tooLong++
			return nil
		}
		if mine && of == ofLive && kind != opLoad {
			return fmt.Errorf("key %v, which the call is about", k)
		}
	case ringcache.RemovedReset:
		if kind != opReset {
			return fmt.Errorf("key %v, without a Reset", k)
		}
	case ringcache.RemovedDeleted:
		if !mine || kind != opDelete && kind != opWrite && kind != opRewrite && kind != opLoad {
			return fmt.Errorf("key %v, which nobody deletes", k)
		}
	case ringcache.RemovedReplaced:
		if !(mine && kind == opWrite || kind == opBatch && w.on.pending[k] != nil) {
			return fmt.Errorf("key %v, which nobody sets", k)
		}
	}
	return nil
}

// isOutgrown reports whether an entry is of a larger cache, and a write that moves it cannot store
// it again: Set refuses its value by now, or, in the cold part, it is too long for the bucket.
func (w *witness) isOutgrown(k entryKey, e *entry) bool {
	longest := ringtest.Shared(w.c).Longest(w.bound, false)
	return e.Size > w.bound/16 ||
		w.p.o.Compressor != nil && e.Size+len(keyBytes(k.id))+record.MaxHeader+8 > longest
}

// keyOf returns the key that is meant by its bytes.
func (w *witness) keyOf(name string, b []byte) (k entryKey, ok bool) {
	if name != "" {
		n, err := strconv.Atoi(name[len(name)-1:])
		if err != nil || n < 1 || n > w.p.spaces || name != spaceName(n) {
			return k, false
		}
		k.space = n
	}
	if len(b) < 4 {
		return k, false
	}
	k.id = binary.LittleEndian.Uint32(b)
	return k, int(k.id) < w.p.keys && bytes.Equal(b, keyBytes(k.id))
}

func spaceName(i int) string { return fmt.Sprint("a tenant's space ", i) }

// keyBytes returns a key, which begins with its id.
func keyBytes(id uint32) []byte {
	n := 4 + int(id*7%37)
	if id%64 == 9 {
		n = 300
	}
	b := make([]byte, n)
	binary.LittleEndian.PutUint32(b, id)
	for i := 4; i < n; i++ {
		b[i] = byte(id) ^ byte(i)
	}
	return b
}

// newEntry returns an entry that is stored between two times with a TTL, 0 for none, of which a
// part may be taken away.
func (w *witness) newEntry(s ringtest.Stamp, from time.Duration, ttl time.Duration, jitter float64,
) *entry {
	e := &entry{Stamp: s}
	w.setTTL(e, from, ttl, jitter)
	return e
}

// setTTL notes that an entry has been given a TTL since a time.
func (w *witness) setTTL(e *entry, from time.Duration, ttl time.Duration, jitter float64) {
	e.soon, e.late = 0, 0
	if ttl > 0 && ttl < math.MaxInt64/2 {
		least := max(ttl-time.Duration(jitter*float64(ttl)), clock.Tick)
		e.soon, e.late = from+least-w.early(), w.now()+ttl
	}
	w.used(e, from, true)
}

// storedSince notes that an entry that was drawn up at from may have been stored as late as now.
func (w *witness) storedSince(e *entry, from time.Duration) {
	if e.late != 0 {
		e.late += w.now() - from
	}
	w.used(e, from, true)
}

// early returns how long before its deadline an entry may expire: a tick, or more if a file is
// opened again while the real clock runs.
func (w *witness) early() time.Duration {
	if w.p.real {
		return time.Minute
	}
	return clock.Tick
}

// used notes that an entry was written or read since a time.
func (w *witness) used(e *entry, from time.Duration, written bool) {
	idle := w.p.o.ExpireAfterAccess
	if idle == 0 {
		return
	}
	soon := from + idle - w.early()
	if !written {
		soon = max(e.idleSoon, soon-idle/2-w.early())
	}
	e.idleSoon, e.idleLate = soon, w.now()+idle
}

// mayBeOver reports whether an entry may have expired.
func (e *entry) mayBeOver(now time.Duration) bool {
	return e.late != 0 && now >= e.soon || e.idleLate != 0 && now >= e.idleSoon
}

// isOver reports whether it has.
func (e *entry) isOver(now time.Duration) bool {
	return e.late != 0 && now >= e.late || e.idleLate != 0 && now >= e.idleLate
}

// over describes when an entry expires.
func (e *entry) over() string {
	return fmt.Sprintf("%v..%v (idle %v..%v)", e.soon, e.late, e.idleSoon, e.idleLate)
}
