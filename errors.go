package ringcache

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/snapshot"
)

// Errors that the methods of [Cache] and [Typed] return, wrapped with what was
// asked for and the bound that it met. Test for them with [errors.Is]. None of
// them leaves the cache unusable.
var (
	// ErrTooLarge is returned when the key is longer than 65,535 bytes or the
	// value longer than a sixteenth of the cache's bound, by Set,
	// SetIfAbsent, SetIfChanged, CompareAndSwap, Update, Append, SetBatch and their forms with
	// a TTL, and by those of a Typed view or a Namespace. Nothing is stored, and an older value
	// of the key is removed: it is out of date.
	ErrTooLarge = errors.New("entry too large")

	// ErrClosed is returned after Close by Set, SetIfAbsent, SetIfChanged, CompareAndSwap,
	// Update (unless its function removes the key), Append, SetBatch and their forms with a TTL,
	// by Resize, by those of a Typed view or a Namespace, by Invalidate, and by the methods
	// that save or read a snapshot. Lookups of a closed cache miss, and
	// GetOrLoad and GetOrLoadBatch load without storing. Nothing is removed from
	// [Options].File: the next cache that is opened on it finds the older value.
	ErrClosed = errors.New("cache is closed")

	// ErrNoMemory is returned when the operating system gives no memory at all, or less than
	// twice the size of a large entry, by Set, SetIfAbsent, SetIfChanged, CompareAndSwap, Update,
	// Append, SetBatch and their forms with a TTL, and by those of a Typed view or a Namespace;
	// by NewWithOptions, if [Options].File cannot be made as the disk is full. Nothing is
	// stored, an older value of the key is removed, and a later Set tries again. Where only a
	// part of the memory is refused, the cache works as a smaller one, without an error: see
	// [Stats].EffectiveMaxBytes.
	ErrNoMemory = errors.New("no memory from the operating system")

	// ErrTTLTooShort is returned by SetWithTTL and SetBatchWithTTL, and for a new entry by
	// SetIfAbsentWithTTL and UpdateWithTTL, also of a Typed view or a Namespace, for a TTL
	// above 0 and below the clock's tick of 100 ms. Nothing is stored, and an older value of
	// the key is removed.
	ErrTTLTooShort = errors.New("time to live too short")

	// ErrAbsent is returned by GetOrLoad for a key of which a load has found that it has no
	// value, and may be returned by a load to say so. GetOrLoadBatch reports such a key as
	// one without a value and without an error.
	ErrAbsent = errors.New("key is absent")

	// ErrLoadCycle is returned by GetOrLoad and GetOrLoadBatch, to a load that calls them, when
	// the key that it asks for is loaded by this load itself, or by one that waits for it: none
	// of them could end. The error names the keys in the order in which each load waits for the
	// next. Only loads that pass on the context that they are given can be found out.
	ErrLoadCycle = errors.New("loads wait for each other in a circle")

	// ErrInvalidOptions is returned by NewWithOptions for a setting out of its range, and by
	// Resize for a bound that is out of range. New panics with it. For an existing [Options].File,
	// the range of MaxBytes is that of Resize.
	ErrInvalidOptions = errors.New("invalid options")

	// ErrEncode is returned by all methods of a Typed view that store when its codec cannot
	// encode the value. It is wrapped together with the codec's own error. Nothing is stored,
	// and an older value of the key is removed, except by SetIfAbsent, SetIfAbsentWithTTL and
	// CompareAndSwap.
	ErrEncode = errors.New("value cannot be encoded")

	// ErrDecode is returned by Get, GetWithTTL, Peek, GetBatch, GetAndDel, SetIfAbsentWithTTL,
	// Update and UpdateWithTTL of a Typed view when the key is there but its codec cannot decode
	// the bytes. It is wrapped together with the codec's
	// own error, and names the key. GetAndDel removes the entry, the others leave it. GetOrLoad
	// and GetOrLoadBatch remove the entry and load the key, and return ErrDecode if what they
	// have loaded cannot be decoded either.
	ErrDecode = errors.New("value cannot be decoded")

	// ErrInUse is returned by NewWithOptions when another cache, of this process or of
	// another, has [Options].File.
	ErrInUse = ringfile.ErrInUse

	// ErrCorrupt is returned by LoadFromFile and ReadSnapshot, and reported by Load, for
	// what is no snapshot, or a damaged one: the error says at which offset, and what is
	// wrong there. NewWithOptions returns it if [Options].File is no ring file, or of a
	// machine with another byte order, or if File + ".dict" holds something other than
	// dictionaries. The file stays as it is.
	ErrCorrupt = snapshot.ErrCorrupt

	// ErrVersion is the error of the same functions for a file whose format this version of the
	// package does not know, and of all but NewWithOptions for a snapshot of another
	// [Options].Version.
	ErrVersion = snapshot.ErrVersion
)

// LoadPanic is what a caller of [Cache.GetOrLoad] or [Cache.GetOrLoadBatch] panics with when
// a load that it waits for does. All who wait get the same one and must not change it.
type LoadPanic struct {
	Value any    // what the load panicked with
	Stack []byte // of the load, as of [debug.Stack]
}

// Error returns the panic's value and the stack of the load.
func (p *LoadPanic) Error() string {
	return fmt.Sprintf("ringcache: load entry: panic: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic's value if it is an error, else nil.
func (p *LoadPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// refusals count the writes that were refused, by their error.
type refusals struct{ tooLarge, noMemory, ttlTooShort, closed atomic.Uint64 }

// count counts a write that was refused with err.
func (r *refusals) count(err error) {
	switch {
	case errors.Is(err, ErrTooLarge):
		r.tooLarge.Add(1)
	case errors.Is(err, ErrNoMemory):
		r.noMemory.Add(1)
	case errors.Is(err, ErrClosed):
		r.closed.Add(1)
	case errors.Is(err, ErrTTLTooShort):
		r.ttlTooShort.Add(1)
	}
}

// mustBeFunc panics if a function that is nil was given to a method, before it is needed.
func mustBeFunc(method string, ok bool) {
	if !ok {
		panic("ringcache: " + method + ": nil function")
	}
}

// longestQuote is how much of a key an error quotes, in characters.
const longestQuote = 64
