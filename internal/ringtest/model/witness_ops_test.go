package model

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// The operations of the witness on single keys.

// witnessOps are the operations, and their shares.
var witnessOps = []struct {
	name  string
	share int
	do    func(w *witness) error
}{
	{"look", 250, func(w *witness) error { return w.look(w.draw(), w.rnd.IntN(lookKinds)) }},
	{"Set", 250, (*witness).set},
	{"SetWithTTL", 60, (*witness).setWithTTL},
	{"Update", 70, (*witness).update},
	{"CompareAndSwap", 40, (*witness).compareAndSwap},
	{"SetIfChanged", 30, (*witness).setIfChanged},
	{"SetIfAbsent", 30, (*witness).setIfAbsent},
	{"Touch", 30, (*witness).touch},
	{"Del", 25, (*witness).del},
	{"GetBatch", 15, (*witness).getBatch},
	{"SetBatch", 15, (*witness).setBatch},
	{"GetOrLoad", 40, (*witness).getOrLoad},
	{"GetOrLoadBatch", 15, (*witness).getOrLoadBatch},
	{"time", 40, (*witness).pass},
	{"DeleteExpired", 3, (*witness).deleteExpired},
	{"compress", 20, (*witness).compress},
	{"Stats", 20, (*witness).gauges},
	{"All", 2, (*witness).all},
	{"Resize", 5, (*witness).resize},
	{"Reset", 1, (*witness).reset},
	{"namespace", 6, (*witness).resetSpace},
	{"save", 2, (*witness).save},
	{"restore", 2, (*witness).restore},
	{"reopen", 3, (*witness).reopen},
}

// step does one operation.
func (w *witness) step() error {
	total := 0
	for _, o := range witnessOps {
		total += o.share
	}
	at := w.rnd.IntN(total)
	for _, o := range witnessOps {
		if at -= o.share; at >= 0 {
			continue
		}
		w.note = ""
		err := o.do(w)
		if len(w.trail) > 30 {
			w.trail = w.trail[1:]
		}
		w.trail = append(w.trail, fmt.Sprintf("  %v %s %s", w.now(), o.name, w.note))
		if w.mu.Lock(); err == nil {
			err = w.complaint
		}
		w.mu.Unlock()
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.name, w.note, err)
		}
		return nil
	}
	return nil
}

// cacheOf returns the cache of a space.
func (w *witness) cacheOf(space int) *ringcache.Cache {
	if space == 0 {
		return w.c
	}
	return w.c.Namespace(spaceName(space))
}

// in returns the cache of a key, which is made if there is none.
func (w *witness) in(k entryKey) *ringcache.Cache {
	w.begin(opResetSpace, entryKey{space: -1})
	defer w.end()
	return w.cacheOf(k.space)
}

// draw draws a key: few of them often.
func (w *witness) draw() entryKey {
	x := w.rnd.Float64()
	if w.rnd.IntN(2) == 0 {
		x *= x * x
	}
	k := entryKey{w.rnd.IntN(w.p.spaces + 1), uint32(x * float64(w.p.keys))}
	w.note = fmt.Sprint(k)
	return k
}

// size draws the length of a value.
func (w *witness) size() int {
	most := w.bound / 16
	switch w.p.sizes {
	case 1:
		return 50 + w.rnd.IntN(500)
	case 2:
		return min(int(math.Exp(w.rnd.Float64()*math.Log(float64(w.bound)/64))), most)
	case 3:
		if w.rnd.IntN(5) == 0 {
			return w.bound/64 + w.rnd.IntN(w.bound/32)
		}
	case 4:
		if least := 64<<10 + 1; w.rnd.IntN(5) == 0 && most > least {
			return least + w.rnd.IntN(min(most-least, 4*least))
		}
	}
	return w.rnd.IntN(200)
}

// value returns a value that was never set before.
func (w *witness) value(k entryKey) (ringtest.Stamp, []byte) {
	w.version++
	s := ringtest.Stamp{ID: k.id | uint32(k.space)<<24, Version: w.version, Size: w.size()}
	w.note += fmt.Sprintf(" %d bytes", s.Size)
	return s, s.Value(nil)
}

// ttl draws a TTL.
func (w *witness) ttl() time.Duration {
	unit := time.Second
	if w.p.real {
		unit = time.Hour
	}
	ttl := time.Duration(1+w.rnd.IntN(30))*unit + time.Duration(w.rnd.IntN(1000))*time.Millisecond
	switch w.rnd.IntN(12) {
	case 0:
		ttl = -ttl
	case 1:
		ttl = time.Duration(1 + w.rnd.IntN(int(clock.Tick)-1))
	case 2:
		ttl = math.MaxInt64 - time.Duration(w.rnd.IntN(1000))
	case 3, 4:
		ttl = 0
	}
	w.note += fmt.Sprintf(" for %v", ttl)
	return ttl
}

// isStored reports whether a value with that TTL is stored.
func isStored(ttl time.Duration) bool { return ttl == 0 || ttl >= clock.Tick }

// counted adds a call to the expected counters of the whole cache and of the namespace.
func (w *witness) counted(space int, add counts) {
	for i := range w.counts {
		if c := &w.counts[i]; i == 0 || i == space {
			c.gets += add.gets
			c.misses += add.misses
			c.sets += add.sets
			c.dels += add.dels
		}
	}
}

// was returns a copy of the entry that a key has, or nil.
func (w *witness) was(k entryKey) *entry {
	if e := w.live[k]; e != nil {
		was := *e
		return &was
	}
	return nil
}

// isThere reports whether an entry was there for certain during the call.
func (w *witness) isThere(e *entry) bool {
	return e != nil && !e.mayBeOver(w.now())
}

// leftOutgrown reports whether an entry left in the call because it is too long for the cache by
// now: then the call may find none, though it is about that entry.
func (w *witness) leftOutgrown(k entryKey, e *entry) bool {
	return e != nil && len(w.on.told[k]) > 0 && w.isOutgrown(k, e)
}

// found checks whether a call should have found a key. e is its entry before the call.
func (w *witness) found(k entryKey, e *entry, ok bool) error {
	switch {
	case ok && e == nil:
		return fmt.Errorf("key %v is found, although OnRemove was told of it, or it was never set", k)
	case ok && e.isOver(w.on.started):
		return fmt.Errorf("key %v is found, and has expired at %v", k, e.over())
	case !ok && w.isThere(e) && !w.leftOutgrown(k, e):
		return fmt.Errorf("key %v is missed (%v, lives until %v), and OnRemove was not told before "+
			"the call, but %v in it", k, e.Stamp, e.over(), w.on.told[k])
	case !ok && e != nil && w.live[k] != nil: // it has expired
		w.live[k].soon, w.live[k].late = 1, 1
	}
	return nil
}

// hit checks a returned value and records the read.
func (w *witness) hit(k entryKey, e *entry, v []byte, read bool) error {
	if err := w.found(k, e, true); err != nil {
		return err
	}
	if !e.Wrote(v) {
		return fmt.Errorf("key %v: found %d bytes, want %v: %.40x", k, len(v), e.Stamp, v)
	}
	if now := w.live[k]; now != nil && read {
		w.used(now, w.on.started, false)
	}
	return nil
}

// replaced records a stored value. OnRemove must have reported the previous one.
func (w *witness) replaced(k entryKey, e *entry) error {
	if old := w.live[k]; old != nil {
		return fmt.Errorf("key %v was set over %v, and OnRemove was not told", k, old.Stamp)
	}
	delete(w.absent, k)
	w.live[k] = e
	if w.rnd.IntN(3) == 0 {
		return w.look(k, w.rnd.IntN(lookKinds))
	}
	return nil
}

// gone checks that a key is absent after a call, and that OnRemove reported it.
func (w *witness) gone(k entryKey) error {
	delete(w.absent, k)
	if e := w.live[k]; e != nil {
		return fmt.Errorf("key %v was removed, and OnRemove was not told of %v", k, e.Stamp)
	}
	return w.look(k, w.rnd.IntN(lookKinds))
}

// The ways to look for a key.
const (
	lookGet = iota
	lookHasGet
	lookWithTTL
	lookHas
	lookTTL
	lookPeek
	lookKinds
)

// look looks for a key in one of the ways.
func (w *witness) look(k entryKey, how int) error {
	c, key, e := w.in(k), keyBytes(k.id), w.was(k)
	w.begin(opLookup, k)
	var v []byte
	var ok bool
	var left time.Duration
	switch how {
	case lookGet:
		v = c.Get(nil, key)
		ok = len(v) > 0 || e != nil && e.Size == 0 && !e.mayBeOver(w.now())
	case lookHasGet:
		v, ok = c.HasGet(nil, key)
	case lookWithTTL:
		v, left, ok = c.GetWithTTL(nil, key)
	case lookHas:
		ok = c.Has(key)
	case lookTTL:
		left, ok = c.TTL(key)
	default:
		v, ok = c.Peek(nil, key)
	}
	w.end()
	if how < lookTTL {
		if how == lookGet && e != nil && e.Size == 0 && e.mayBeOver(w.now()) {
			ok = c.Has(key) // Get cannot tell
			w.counted(k.space, counts{gets: 1, misses: oneIf(!ok)})
		}
		w.counted(k.space, counts{gets: 1, misses: oneIf(!ok)})
	}
	if !ok {
		return w.found(k, e, false)
	}
	if how == lookHas || how == lookTTL {
		v = nil
		if e != nil {
			v = e.Value(nil)
		}
	}
	if err := w.hit(k, e, v, how < lookTTL); err != nil {
		return fmt.Errorf("look %d: %w", how, err)
	}
	if now := w.was(k); now != nil && (how == lookTTL || how == lookWithTTL) {
		return w.fits(k, now, left)
	}
	return nil
}

func oneIf(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// unknown is the expiry of an entry whose expiry is not known.
const unknown = math.MaxInt64 / 2

// fits checks the time that an entry is said to have left.
func (w *witness) fits(k entryKey, e *entry, left time.Duration) error {
	never := e.late == 0 && e.idleLate == 0
	at, least := w.now()+left, w.on.started+left
	switch {
	case (never || e.late == unknown) && left == 0:
	case never, left == 0, e.late != 0 && least > e.late, e.idleLate != 0 && least > e.idleLate,
		!e.mayBeOver(at + 1):
		return fmt.Errorf("key %v has %v left at %v, and expires at %v", k, left, w.now(), e.over())
	}
	return nil
}

func (w *witness) set() error {
	k := w.draw()
	s, v := w.value(k)
	tooLong := w.rnd.IntN(60) == 0
	if tooLong {
		v = make([]byte, w.bound/16+1)
	}
	c, key := w.in(k), keyBytes(k.id)
	w.begin(opWrite, k)
	err := c.Set(key, v)
	w.end()
	w.counted(k.space, counts{sets: 1})
	if tooLong {
		w.refused.TooLarge++
		if !errors.Is(err, ringcache.ErrTooLarge) {
			return fmt.Errorf("%d bytes: %w", len(v), err)
		}
		return w.gone(k)
	}
	if err != nil {
		return err
	}
	return w.replaced(k, w.newEntry(s, w.on.started, w.p.o.TTL, w.p.o.TTLJitter))
}

func (w *witness) setWithTTL() error {
	k, ttl := w.draw(), w.ttl()
	s, v := w.value(k)
	c, key := w.in(k), keyBytes(k.id)
	w.begin(opWrite, k)
	err := c.SetWithTTL(key, v, ttl)
	w.end()
	w.counted(k.space, counts{sets: 1})
	return w.wrote(k, s, ttl, err)
}

// wrote updates the model after a write with an explicit TTL.
func (w *witness) wrote(k entryKey, s ringtest.Stamp, ttl time.Duration, err error) error {
	if ringtest.IsBrief(ttl) {
		w.refused.TTLTooShort++
		if errors.Is(err, ringcache.ErrTTLTooShort) {
			err = nil
		} else if err == nil {
			err = errors.New("no error for a short TTL")
		}
	}
	if err != nil {
		return err
	}
	if !isStored(ttl) {
		return w.gone(k)
	}
	return w.replaced(k, w.newEntry(s, w.on.started, ttl, 0))
}
