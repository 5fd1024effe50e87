package ringtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
)

// Life is what a Runner knows about the times to live of entries, and what OnRemove has reported.
type Life struct {
	age       time.Duration            // of the cache
	idle      time.Duration            // Options.ExpireAfterAccess
	Deadlines map[uint32]time.Duration // when entries expire that may be live
	Lasts     map[uint32]time.Duration // beyond which reads do not put that off; 0: never
	renewals  int                      // how often one has
	lapsed    map[uint32]bool          // expired, and perhaps not yet reclaimed
	negatives map[uint32]time.Duration // when the negative entries expire that may be there
	parts     map[uint64][]Stamp       // what Append has put together, by version

	told      bool
	live      map[uint32]entry // exactly what the cache holds, if told
	reasons   [ringcache.RemovedReset + 1]int
	dropped   map[uint32]bool // evicted by the current call
	complaint error           // the first wrong report of OnRemove
	reading   bool            // a lookup is under way: its reports are noted after it
	later     []func()        // these reports
}

// entry is a value and the time when it expires, or 0 if it never does.
type entry struct {
	Stamp
	deadline time.Duration
}

// NewLife returns the Life of a new cache. If told, the cache has an OnRemove.
func NewLife(told bool) Life {
	return Life{
		age:       time.Minute, // so that no deadline is 0
		Deadlines: map[uint32]time.Duration{},
		Lasts:     map[uint32]time.Duration{},
		lapsed:    map[uint32]bool{},
		negatives: map[uint32]time.Duration{},
		parts:     map[uint64][]Stamp{},
		told:      told,
		live:      map[uint32]entry{},
		dropped:   map[uint32]bool{},
	}
}

// clock returns the age of the cache. It is the cache's clock.
func (l *Life) clock() time.Duration { return l.age }

// deadline returns when an entry set now with that ttl expires, in whole ticks of the clock, or 0
// if it never does.
func (l *Life) deadline(ttl time.Duration) time.Duration {
	if ttl == 0 || ttl > math.MaxInt64-l.age || (l.age+ttl)/clock.Tick >= math.MaxUint32-1 {
		return 0
	}
	return (l.age + ttl).Truncate(clock.Tick)
}

// idleEnd returns when an entry expires that is read or written now, and has a last deadline.
func (l *Life) idleEnd(last time.Duration) time.Duration {
	switch end := l.deadline(l.idle); {
	case l.idle == 0:
		return last
	case last == 0:
		return end
	default:
		return min(last, end)
	}
}

// read notes a read of an entry that is there: in the second half of its idle time, that begins
// anew.
func (r *Runner) read(id uint32) {
	at, ok := r.Deadlines[id]
	half := (r.idle/2 + clock.Tick - 1) / clock.Tick
	if r.idle == 0 || !ok || at/clock.Tick-r.age/clock.Tick > half {
		return
	}
	if end := r.idleEnd(r.Lasts[id]); end != at {
		r.renewals++
		r.expiresAt(id, end)
	}
}

// has checks what Has says of a key.
func (r *Runner) has(id uint32) error {
	ok := r.C.Has(r.KeyOf(id))
	err := r.found(id, ok)
	if ok && err == nil {
		r.read(id)
	}
	return err
}

// over reports whether a deadline has passed.
func (l *Life) over(deadline time.Duration) bool { return deadline != 0 && l.age >= deadline }

// wrote reports whether v is the value of s.
func (l *Life) wrote(s Stamp, v []byte) bool {
	parts, ok := l.parts[s.Version]
	if !ok {
		return s.Wrote(v)
	}
	for _, p := range parts {
		if len(v) < p.Size || !p.Wrote(v[:p.Size]) {
			return false
		}
		v = v[p.Size:]
	}
	return len(v) == 0
}

// bytesOf returns the value of s in a new slice.
func (l *Life) bytesOf(s Stamp) []byte {
	if parts, ok := l.parts[s.Version]; ok {
		var v []byte
		for _, p := range parts {
			v = append(v, p.Value(nil)...)
		}
		return v
	}
	return s.Value(nil)
}

// departed is the cache's OnRemove. It keeps the first error of depart as the complaint.
func (r *Runner) departed(gone ringcache.Removal) {
	if r.reading {
		r.later = append(r.later, func() { r.departed(gone) })
		return
	}
	if gone.Namespace != "" && r.complaint == nil {
		r.complaint = fmt.Errorf("OnRemove is told of namespace %q", gone.Namespace)
	}
	if err := r.depart(gone.Key, gone.Value, gone.Reason); err != nil && r.complaint == nil {
		r.complaint = fmt.Errorf("OnRemove is told of %d bytes for reason %s: %w",
			len(gone.Value), gone.Reason, err)
	}
}

// endReading notes which entries a lookup has evicted. A lookup of a key in the cold part makes
// room for that key, and may evict even another key of the same batch.
func (r *Runner) endReading() {
	r.reading = false
	for _, note := range r.later {
		note()
	}
	r.later = r.later[:0]
}

// depart checks a report of OnRemove against the model, and removes the entry from it.
func (r *Runner) depart(k, v []byte, reason ringcache.RemovalReason) error {
	var id uint32
	if len(k) > 0 {
		id = binary.LittleEndian.Uint32(k)
	}
	if !bytes.Equal(k, r.makeKey(nil, id)) {
		return fmt.Errorf("no such key: %.32x", k)
	}
	e, ok := r.live[id]
	switch {
	case !ok:
		return fmt.Errorf("key %d is not there", id)
	case !r.wrote(e.Stamp, v):
		return fmt.Errorf("key %d has another value, %v", id, e.Stamp)
	}
	r.reasons[reason]++
	if reason == ringcache.RemovedEvicted {
		r.dropped[id] = true
	}
	delete(r.live, id)
	r.forget(id)
	mine := id == r.current.ID
	kind := r.current.Kind
	switch reason {
	case ringcache.RemovedExpired:
		if !r.over(e.deadline) {
			return fmt.Errorf("key %d is live until %v, now is %v", id, e.deadline, r.age)
		}
	case ringcache.RemovedEvicted:
		if r.over(e.deadline) {
			return fmt.Errorf("key %d, which has expired at %v", id, e.deadline)
		}
	case ringcache.RemovedReset:
		if kind != opReset {
			return errors.New("without a Reset")
		}
	case ringcache.RemovedReplaced, ringcache.RemovedDeleted:
		if !mine || r.over(e.deadline) {
			return fmt.Errorf("key %d, which has expired (%v) or is not in this call",
				id, r.over(e.deadline))
		}
		if deletes := kind == opDel ||
			kind == opGetAndDel; deletes != (reason == ringcache.RemovedDeleted) &&
			kind != opUpdate && kind != opSetWithTTL && kind != opTouch {
			return errors.New("which is not what was done")
		}
	}
	clear(k) // they belong to the callback
	clear(v)
	return nil
}

// known is what the model knows about a key before a call, during which departed may change the
// model.
type known struct {
	id         uint32
	candidates []Stamp
	there      bool          // for certain
	last       time.Duration // its last deadline, if it is there
}

// before returns what is known about a key.
func (r *Runner) before(id uint32) known {
	e, ok := r.live[id]
	candidates := slices.Clone(r.model.Candidates(id))
	return known{id: id, candidates: candidates, there: ok && !r.over(e.deadline),
		last: r.Lasts[id]}
}

// answered checks whether a call was right to find a key or to miss it. A key that was missed must
// not reappear without a write.
func (r *Runner) answered(k known, ok bool) error {
	if ok {
		r.Hits++
		if len(k.candidates) == 0 {
			return errors.New("found although it was deleted, evicted, expired or never set")
		}
		return nil
	}
	r.misses++
	if k.there && !r.dropped[k.id] {
		return errors.New("not found, and OnRemove was not told")
	}
	r.model.Drop(k.id)
	delete(r.Deadlines, k.id)
	return nil
}

// forget notes that the key has no entry, not even an expired one.
func (r *Runner) forget(id uint32) {
	r.model.Drop(id)
	delete(r.Deadlines, id)
	delete(r.lapsed, id)
	delete(r.negatives, id)
}

// kept notes that a write which keeps the expiry has stored a value. It checks that the entry has
// the expiry of the entry before it or, if there may have been none, that of a new entry.
func (r *Runner) kept(o Op, s Stamp, k known) error {
	left, ok := r.C.TTL(r.KeyOf(o.ID))
	fresh := r.deadline(r.G.TTL)
	wasThere, mayBeNew := len(k.candidates) > 0, !k.there || r.dropped[k.id]
	for _, last := range []time.Duration{k.last, fresh} {
		at := r.idleEnd(last)
		fits := left == at-r.age || at == 0 && left == 0
		if ok && !(fits && (last == k.last && wasThere || last == fresh && mayBeNew)) {
			continue
		}
		if ok && r.idle != 0 && wasThere && mayBeNew { // which one it has cannot be seen
			r.C.Touch(r.KeyOf(o.ID), r.G.TTL)
			last = fresh
		}
		return r.storedUntil(o, s, last)
	}
	return fmt.Errorf("at %v it has %v to live, want until %v (%v) or %v (%v)",
		r.age, left, k.last, wasThere, fresh, mayBeNew)
}

// stored notes that a value was set with a TTL, and reads it back.
func (r *Runner) stored(o Op, s Stamp, ttl time.Duration) error {
	return r.storedUntil(o, s, r.deadline(ttl))
}

// storedUntil is stored with the entry's last deadline.
func (r *Runner) storedUntil(o Op, s Stamp, last time.Duration) error {
	if _, ok := r.live[o.ID]; ok {
		return errors.New("set over a value that OnRemove was not told of")
	}
	r.forget(o.ID)
	r.model.Set(o.ID, s)
	r.endsAt(o.ID, last)
	if r.told {
		r.live[o.ID] = entry{s, r.idleEnd(last)}
	}
	if r.lapsed[o.ID] {
		return r.has(o.ID) // it has expired at once
	}
	return r.readBack(o, s.Size)
}

// renewed notes that an entry has a new TTL.
func (r *Runner) renewed(id uint32, ttl time.Duration) { r.endsAt(id, r.deadline(ttl)) }

// endsAt notes an entry's last deadline.
func (r *Runner) endsAt(id uint32, last time.Duration) {
	r.Lasts[id] = last
	r.expiresAt(id, r.idleEnd(last))
}

// expiresAt notes when an entry expires.
func (r *Runner) expiresAt(id uint32, at time.Duration) {
	if e, ok := r.live[id]; ok {
		r.live[id] = entry{e.Stamp, at}
	}
	delete(r.Deadlines, id)
	if at != 0 {
		r.Deadlines[id] = at
		r.lapse()
	}
}

// lapse notes which entries have expired.
func (r *Runner) lapse() {
	for id, at := range r.Deadlines {
		if r.over(at) {
			r.forget(id)
			r.lapsed[id] = true
		}
	}
}

// ttlOf returns the TTL that o sets.
func (r *Runner) ttlOf(o Op) time.Duration {
	arg := time.Duration(o.Arg)
	switch o.flags >> 3 % 16 {
	case 0:
		return 0
	case 1:
		return -1 - arg*time.Hour
	case 2:
		return arg % clock.Tick
	case 3:
		return math.MaxInt64 - arg
	case 4, 5, 6:
		return arg * time.Second
	default:
		return arg % 1000 * clock.Tick / 7
	}
}

func (r *Runner) setWithTTL(o Op) error {
	ttl := r.ttlOf(o)
	s, v := r.newValue(o, r.sizeOf(o))
	err := r.C.SetWithTTL(r.KeyOf(o.ID), v, ttl)
	if IsBrief(ttl) != errors.Is(err, ringcache.ErrTTLTooShort) || !IsBrief(ttl) && err != nil {
		return fmt.Errorf("set %d bytes for %v: %w", len(v), ttl, err)
	}
	if ttl < 0 || IsBrief(ttl) {
		r.forget(o.ID)
		return r.has(o.ID)
	}
	return r.stored(o, s, ttl)
}

// stepOfLife does one operation of the kinds that Step does not handle itself.
func (r *Runner) stepOfLife(o Op) error {
	switch o.Kind {
	case opWait:
		if o.Arg%64 == 0 {
			r.age += time.Duration(o.Arg) * time.Second
		}
		r.age += time.Duration(o.Arg%256) * clock.Tick / 9
		r.lapse()
		return nil
	case opTouch:
		return r.touch(o)
	case opTTL:
		return r.ttl(o)
	case opDeleteExpired:
		return r.deleteExpired()
	case opSetIfAbsent:
		return r.setIfAbsent(o)
	case opSetIfChanged:
		return r.setIfChanged(o)
	case opCompareAndSwap:
		return r.compareAndSwap(o)
	case opUpdate:
		return r.update(o)
	case opAppend:
		return r.append(o)
	case opGetOrLoad:
		return r.getOrLoad(o)
	default:
		return r.getAndDel(o)
	}
}

func (r *Runner) touch(o Op) error {
	ttl := r.ttlOf(o)
	known := r.before(o.ID)
	found := r.C.Touch(r.KeyOf(o.ID), ttl)
	if err := r.answered(known, found); err != nil || !found {
		return err
	}
	if ttl < 0 || IsBrief(ttl) {
		r.forget(o.ID)
		return r.has(o.ID)
	}
	r.renewed(o.ID, ttl)
	if r.lapsed[o.ID] {
		return nil
	}
	if _, bad := r.G.Compressor.(*BadCompressor); bad { // Touch leaves the value packed
		return r.has(o.ID)
	}
	return r.readBack(o, -1)
}

func (r *Runner) ttl(o Op) error {
	left, ok := r.C.TTL(r.KeyOf(o.ID))
	if o.flags&4 != 0 {
		var v []byte
		v, left, ok = r.C.GetWithTTL(r.dst[:0], r.KeyOf(o.ID))
		if r.dst = v; ok {
			if err := r.hit(o.ID, v); err != nil {
				return err
			}
			r.read(o.ID)
		}
	}
	if err := r.found(o.ID, ok); err != nil {
		return err
	}
	at := r.Deadlines[o.ID]
	if ok && at != 0 && left != at-r.age || (!ok || at == 0) && left != 0 {
		return fmt.Errorf("TTL says %v (%v) at %v, the entry expires at %v", left, ok, r.age, at)
	}
	return nil
}

func (r *Runner) deleteExpired() error {
	want := 0
	for _, e := range r.live {
		if r.over(e.deadline) {
			want++
		}
	}
	n := r.C.DeleteExpired()
	if n > len(r.lapsed)+len(r.negatives) && !r.told || r.told && n != want {
		return fmt.Errorf("DeleteExpired dropped %d entries, want %d or up to %d",
			n, want, len(r.lapsed)+len(r.negatives))
	}
	clear(r.lapsed)
	return r.gauges()
}
