package ringcache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/snapshot"
)

// Errors that this package returns, wrapped with details. Test for them with [errors.Is]. The
// methods that store are Set, SetIfAbsent, SetIfChanged, CompareAndSwap, Update, SetBatch and their
// forms with a TTL. An entry with an error is not stored, and an older value of its key is removed
// unless the error's comment says otherwise.
var (
	// ErrTooLarge means that one of the methods that store got a key longer than 65,535 bytes (65,527
	// in a namespace), or a value that is longer than 1/16 of MaxBytes, or has 4 GB or more.
	ErrTooLarge = errors.New("entry too large")

	// ErrClosed means that one of the methods that store, DropNamespace, Resize, or one that saves or
	// reads a snapshot did not do so because of Close. [Options].File keeps the older value.
	ErrClosed = errors.New("cache is closed")

	// ErrNoMemory may be returned by the methods that store if the operating system refuses memory
	// off the heap or for [Options].File, and by NewWithOptions if the disk is too full for that. A
	// later Set tries again. If the system provides only a part, the cache works with that: see
	// [Stats].EffectiveMaxBytes.
	ErrNoMemory = chunk.ErrNoMemory

	// ErrTTLTooShort means that the TTL passed to SetWithTTL, SetBatchWithTTL or Update, or for a new
	// entry to SetIfAbsent, is above 0 and below the clock's tick of 100 ms.
	ErrTTLTooShort = errors.New("time to live too short")

	// ErrAbsent is returned by a load function if the key has no value, and then by GetOrLoad.
	// GetOrLoadBatch does not treat it as an error.
	ErrAbsent = errors.New("key is absent")

	// ErrLoadCycle is returned by GetOrLoad and GetOrLoadBatch if a load that calls them would wait
	// for itself, directly or through others. A cycle is detected only if loads pass on their
	// context.
	ErrLoadCycle = errors.New("loads wait for each other in a cycle")

	// ErrNamespace is returned in a namespace by methods of the whole cache: Resize, Close,
	// DropNamespace, and those that save or read a snapshot.
	ErrNamespace = errors.New("the cache is a namespace")

	// ErrDropped means that an entry was not stored because DropNamespace has dropped its namespace.
	ErrDropped = errors.New("the namespace was dropped")

	// ErrInvalidOptions is returned by NewWithOptions, Load and Resize for a setting that is out of
	// range. New panics with it.
	ErrInvalidOptions = errors.New("invalid options")

	// ErrEncode means that the codec of a Typed view cannot encode a value that is to be stored. Set
	// and SetBatch remove an older value of the key; the atomic writes leave it.
	ErrEncode = errors.New("value cannot be encoded")

	// ErrDecode is returned by methods of a Typed view if the codec cannot decode a value. It names
	// the key, which may be truncated. GetAndDel removes the entry; GetOrLoad and GetOrLoadBatch
	// usually remove it and load the key; the others leave it.
	ErrDecode = errors.New("value cannot be decoded")

	// ErrInUse is returned by NewWithOptions if another cache, in any process, uses a file that it
	// opens. Close may return it if the file was replaced.
	ErrInUse = osfile.ErrLocked

	// ErrCorrupt is returned by LoadFromFile and ReadSnapshot, and reported by Load, for data that
	// is not a snapshot, or is found damaged: the error states the defect. NewWithOptions returns
	// it if a file that it opens is of another kind, and for a File of a machine with a different
	// byte order. The file is left unchanged.
	ErrCorrupt = snapshot.ErrCorrupt

	// ErrVersion is returned by LoadFromFile, ReadSnapshot and NewWithOptions, and reported by
	// Load, for a file whose format is unknown to this version of the package, and for a snapshot
	// with a different [Options].Version.
	ErrVersion = snapshot.ErrVersion
)

// Errors that stay within the package.
var (
	// errUnmet is the result of a write whose condition does not hold.
	errUnmet = errors.New("condition does not hold")

	// errResized tells a write that its record belongs elsewhere by now.
	errResized = errors.New("cache was resized")

	// errForgotten says that the key belongs to a namespace that was reset or dropped since the key
	// was made: the write needs another key.
	errForgotten = errors.New("namespace was reset")

	// errCold says that the value that a call needs is in the cold part. It is looked up there, or
	// moved to main, without a lock, and the call is retried.
	errCold = errors.New("value is in the cold part")
)

// LoadPanic is the value with which [Cache.GetOrLoad] and [Cache.GetOrLoadBatch] panic if a load
// that they wait for panics. All callers share it.
type LoadPanic struct {
	Value any    // the value of the panic
	Stack []byte // the stack of the load, as returned by [debug.Stack]
}

// Error returns the panic's value and the stack of the load.
func (p *LoadPanic) Error() string {
	return fmt.Sprintf("ringcache: load entry: panic: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic's value if it is an error, and nil otherwise.
func (p *LoadPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// BatchError is the error of GetOrLoadBatch. It holds the error of each key that failed, for
// [errors.Is]; the results of the other keys are valid. (SetBatch and [Typed.GetBatch] return only
// the first error.)
type BatchError struct {
	Failed []KeyError // at least one, in the order of the keys
}

// KeyError is the error for one key of a batch.
type KeyError struct {
	Index int   // of the key in the batch
	Err   error // like those of [Cache.GetOrLoad], without their beginning
}

// Error returns the first error with its index, and the number of others, if any.
func (e *BatchError) Error() string {
	first := e.Failed[0]
	s := fmt.Sprintf("ringcache: load batch: index %d: %v", first.Index, first.Err)
	if n := len(e.Failed) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Unwrap returns the errors of all keys that failed.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, k := range e.Failed {
		errs[i] = k.Err
	}
	return errs
}

// batchErrorOf returns the error for the keys that failed, in any order, or nil if there are none.
func batchErrorOf(failed []KeyError) error {
	if len(failed) == 0 {
		return nil
	}
	slices.SortFunc(failed, func(a, b KeyError) int { return a.Index - b.Index })
	return &BatchError{failed}
}

// invalid returns the error of a setting that is out of its range.
func invalid(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return fmt.Errorf("ringcache: check options: %s: %w", what, ErrInvalidOptions)
}

// refusals counts the refused writes by their error.
type refusals struct{ tooLarge, noMemory, ttlTooShort atomic.Uint64 }

// count counts a write that was refused with err.
func (r *refusals) count(err error) {
	switch {
	case errors.Is(err, ErrTooLarge):
		r.tooLarge.Add(1)
	case errors.Is(err, ErrNoMemory):
		r.noMemory.Add(1)
	case errors.Is(err, ErrTTLTooShort):
		r.ttlTooShort.Add(1)
	}
}

// mustBeFunc panics if a method was given a nil function, before the function is needed.
func mustBeFunc(method string, ok bool) {
	if !ok {
		panic("ringcache: " + method + ": nil function")
	}
}

// longestQuote is how much of a key an error quotes at most, in bytes or characters.
const longestQuote = 64

// cycleError returns the error of a load that would wait for itself through the loads of the given
// keys.
func cycleError(circle [][]byte) error {
	var names strings.Builder
	for _, k := range circle {
		fmt.Fprintf(&names, "%.*q -> ", longestQuote, k)
	}
	return fmt.Errorf("%s%.*q: %w", &names, longestQuote, circle[0], ErrLoadCycle)
}
