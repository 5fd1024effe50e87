package ringcache

import (
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/store"
)

// Bounds on Options.MaxBytes. A cache has 512 buckets if each can have minBucketBytes, and fewer
// otherwise: with less memory, a bucket would hold too few entries to choose between them.
const (
	minBucketBytes = 64 << 10
	maxBucketBytes = 8 << 30 // half of what positions reach (I3)

	minMaxBytes = store.LargeBuckets * minBucketBytes // as many small buckets as large ones
	maxMaxBytes = store.BucketCount * maxBucketBytes
	fullBytes   = store.BucketCount * minBucketBytes // has all buckets
)

const defaultRefreshTimeout = 30 * time.Second

// Options are the settings of a cache. The zero value of each field but
// MaxBytes means its default.
type Options struct {
	// MaxBytes bounds all off-heap memory of the cache, records and index together, in
	// bytes, from 256 KB to 4 TB. There is no default. Below 32 MB a cache has fewer buckets: the
	// greatest power of two that leaves each 64 KB, so fewer goroutines can write at once. With
	// File, the section Files of the package says where the index may exceed the bound.
	MaxBytes int

	// Policy is the rule by which entries are dropped when the cache is full:
	// PolicyS3FIFO, the default, or PolicyFIFO.
	Policy Policy

	// TTL is the time to live of entries that are stored without one. 0, the default, means
	// that such entries do not expire; any other value must be a tick of 100 ms or more.
	// See the section Times to live of the package.
	TTL time.Duration

	// TTLJitter is the part of a time to live, from 0 to below 1, that chance may take away:
	// with 0.1 it is from 90 to 100 %, and not below a tick. So entries that were stored
	// together do not expire together. It is for TTL and for what a load gives
	// ([LoadFunc]); SetWithTTL and Touch are exact. 0, the default, takes nothing away.
	TTLJitter float64

	// ExpireAfterAccess is the idle time: an entry that is not read or written for that long expires.
	// A write starts the idle time anew, and so does a read in its second half. A read in the first
	// half changes nothing and costs nothing, so an entry expires a whole idle time after its last
	// write and between half and a whole idle time after its last read. Every call that counts as a
	// read with the eviction policy is a read here: Get and its variants, Has, View, GetBatch,
	// GetOrLoad, and writes that look at the value. Peek, TTL, loops and snapshots are not.
	//
	// An entry that also has a TTL expires at the earlier of the two deadlines, and [Cache.TTL]
	// returns the time until then. Touch sets the TTL and starts the idle time anew. A negative entry
	// ([ErrAbsent]) expires after the idle time even if it is found in between.
	//
	// Snapshots and File keep both deadlines; a shorter idle time applies at once when they are
	// opened. Entries that were stored in a File without an idle time have none until they are written
	// again. Without the option, entries from a cache that had it expire at the deadline that they
	// had. An idle time takes 8 bytes of each record, a TTL included. 0, the default, means that reads
	// do not change when an entry expires; any other value must be a tick of 100 ms or more, and more
	// than twice RefreshAhead.
	ExpireAfterAccess time.Duration

	// RefreshAhead is how long before its expiry an entry is due. A hit of [Cache.GetOrLoad]
	// or GetOrLoadBatch on an entry that is due starts a load in the background, so that
	// callers need not wait for one later. It should be longer than a load takes, and a small
	// part of the time to live of what is loaded. A load that fails is tried again after an
	// eighth of RefreshAhead. One that panics is a failed one: it counts in [LoadStats].Errors,
	// and the panic is not reported, since no caller waits; recover in the load to log it. If the
	// entry expires first, the next caller abandons the background load and starts another. 0, the
	// default, means that nothing is loaded ahead.
	// Otherwise it must be a tick or more, less than half of ExpireAfterAccess where that is not 0,
	// and, where TTL is not 0, less than the shortest time that TTLJitter leaves of TTL.
	RefreshAhead time.Duration

	// RefreshTimeout is the deadline of a load that RefreshAhead has begun, for which nobody
	// waits: after it, the load's context ends. The default is 30 seconds: more than a load
	// that works takes, and short enough that loads which hang do not pile up. Other loads
	// have no deadline, but their context ends when the last caller's has.
	// Otherwise it must be 100 ms or more.
	RefreshTimeout time.Duration

	// StaleIfError is how long after its expiry an entry may still be the answer of
	// [Cache.GetOrLoad] and [Cache.GetOrLoadBatch], where the load has returned an error: not
	// where it has panicked, found that there is no value, or the caller's context has ended.
	// Each call tries the load again, together with those that come meanwhile, so a load
	// should fail soon. To all other methods the entry is not there, and any write of its
	// key removes it. It takes room: Sets and DeleteExpired leave it until then, but a full
	// cache drops it, and it is in no snapshot and not found again in [Options].File. 0, the
	// default, means that nothing expired is an answer; otherwise it must be a tick or more.
	StaleIfError time.Duration

	// OnRemove, if not nil, is called once for each entry that is removed from the cache, for
	// whatever reason: evicted, expired, deleted, replaced or reset. It is not called for the
	// entries that are there when the cache is closed. It may keep k and v, which are copies,
	// made with one allocation for each entry.
	//
	// OnRemove runs in the goroutine whose call removed the entry, before that call returns and
	// while no lock is held. It may call any method of the same cache, and k may have been set
	// again by then. A call that removes many entries works in steps of 256 entries or 64 KB,
	// and calls OnRemove after each step. If OnRemove panics, the panic reaches the caller. The
	// cache stays consistent, but OnRemove is not called for the other entries of that step, and
	// a value for which entries were evicted may not be stored. With a Compressor, lookups may
	// evict entries too. OnRemove is not called for a value that cannot be decompressed.
	OnRemove func(k, v []byte, reason RemovalReason)

	// HugePages says when the operating system is asked for large pages, which make
	// reads and overwrites spread over hundreds of megabytes faster:
	// HugePagesWhenFull, the default, HugePagesOff or HugePagesAtOnce. It works on
	// Linux, where transparent huge pages are set to madvise or always, and does
	// nothing elsewhere.
	HugePages HugePages

	// File, if not empty, is the path of a file that holds the entries, so that a cache
	// opened on it again is warm, whatever ended the process: see the section Files of the
	// package. It is created, with mode 0600, if it does not exist; its directory must exist.
	// With a Compressor a second file, File + ".dict", holds the dictionaries. A relative path
	// and symbolic links are resolved once, when the cache is made. One cache at a time can
	// use a file; another gets [ErrInUse] until the first is closed or collected.
	//
	// Both must be regular files owned by the effective user, also where that is root: the
	// error is otherwise [os.ErrPermission], or says what is there instead. Permissions of
	// group and others are removed. A file that this package did not write is [ErrCorrupt],
	// and stays as it is. MaxBytes may differ from one opening to the next, within the bounds of
	// [Cache.Resize]; below these it is [ErrInvalidOptions], and the file stays as it is. Linux,
	// macOS and the BSDs support File; elsewhere the error is [errors.ErrUnsupported].
	//
	// Nothing that has expired comes back. As long as the machine runs, setting its wall clock
	// makes no difference. After a reboot, the wall clock tells how much time has passed. If
	// that cannot be true, because the clock shows an earlier time than at Close or was not
	// set (before 2025), entries with an expiry are dropped and all others stay. A wall clock
	// that is behind after a reboot, yet later than at Close, cannot be recognized.
	File string

	// Version is a number of the program's own for what its entries mean: for the encoding of
	// its values, say. A File of another Version, older or newer, is emptied when it is opened
	// ([FileStats].DiscardedFiles), and a snapshot of another one is [ErrVersion]. So a program that
	// is updated, or rolled back, never finds entries that it would misread. The default is 0,
	// the only one that [LoadFromFile] accepts.
	Version uint64

	// Compressor, if not nil, makes a cache hold more: values that the policy would drop are
	// compressed and kept in a cold part, of up to half of the memory, where that makes them
	// a fifth smaller or more. A Get of one decompresses it, which takes a lock and 1 to 2
	// microseconds; a second one moves it back. One goroutine compresses, and Close ends it. No
	// Set waits for it: what it has no time for is kept as it is. But a Set moves what it drops,
	// and takes 1.6 to 2.2 times as long. Dictionaries and buffers, some MB, are on the Go heap.
	// Values above 1/4096 of MaxBytes are not compressed, nor is anything where the values are
	// so large that fewer than some 16,000 fit. See package
	// [github.com/ringcache/ringcache/compress/s2]. nil, the default, costs nothing.
	Compressor Compressor

	// ExpectedEntries is about how many entries the cache will hold, or 0, the default, if
	// that is not known. It is a hint: it affects speed and memory, never results. The index
	// has room for so many entries from the first Set on, instead of growing in steps. If the
	// number is too high, the index takes memory from the entries, up to a sixth of MaxBytes;
	// if it is too low, the index grows.
	ExpectedEntries int
}

// checkBound returns an error if no cache can have maxBytes. It is the rule of all calls with a
// bound, but for New.
func checkBound(maxBytes int) error {
	switch {
	case maxBytes < minMaxBytes:
		return fmt.Errorf("MaxBytes is %d bytes, must be at least %d (256 MB are 256 << 20): %w",
			maxBytes, minMaxBytes, ErrInvalidOptions)
	case int64(maxBytes) > maxMaxBytes:
		return fmt.Errorf("MaxBytes is %d bytes, must be at most %d: %w",
			maxBytes, int64(maxMaxBytes), ErrInvalidOptions)
	}
	return nil
}

// validate returns an error that names the field and the bound.
func (o Options) validate() error {
	if err := checkBound(o.MaxBytes); err != nil {
		return fmt.Errorf("ringcache: check options: %w", err)
	}
	switch {
	case o.Policy > PolicyFIFO:
		return invalid("Policy is %d, must be %v or %v", o.Policy, PolicyS3FIFO, PolicyFIFO)
	case o.HugePages > HugePagesAtOnce:
		return invalid("HugePages is %v, must be %v, %v or %v", o.HugePages,
			HugePagesWhenFull, HugePagesOff, HugePagesAtOnce)
	case o.TTL != 0 && o.TTL < clock.Tick:
		return tooShort("TTL", o.TTL)
	case o.ExpireAfterAccess != 0 && o.ExpireAfterAccess < clock.Tick:
		return tooShort("ExpireAfterAccess", o.ExpireAfterAccess)
	case o.ExpectedEntries < 0:
		return invalid("ExpectedEntries is %d, must be at least 0", o.ExpectedEntries)
	case o.RefreshAhead != 0 && o.RefreshAhead < clock.Tick:
		return tooShort("RefreshAhead", o.RefreshAhead)
	case o.ExpireAfterAccess > 0 && o.RefreshAhead >= o.ExpireAfterAccess/2 && o.RefreshAhead > 0:
		return invalid("RefreshAhead is %v, must be below half of ExpireAfterAccess of %v",
			o.RefreshAhead, o.ExpireAfterAccess)
	case o.TTL > 0 && o.RefreshAhead >= o.TTL:
		return invalid("RefreshAhead is %v, must be below TTL of %v", o.RefreshAhead, o.TTL)
	case !(o.TTLJitter >= 0 && o.TTLJitter < 1): // nor NaN
		return invalid("TTLJitter is %v, must be at least 0 and below 1", o.TTLJitter)
	case o.TTL > 0 && o.RefreshAhead > 0 && o.RefreshAhead >= o.shortestTTL():
		return invalid("RefreshAhead is %v, must be below %v, the least that TTLJitter leaves of TTL",
			o.RefreshAhead, o.shortestTTL())
	case o.RefreshTimeout != 0 && o.RefreshTimeout < clock.Tick:
		return tooShort("RefreshTimeout", o.RefreshTimeout)
	case o.StaleIfError != 0 && o.StaleIfError < clock.Tick:
		return tooShort("StaleIfError", o.StaleIfError)
	}
	return nil
}

// shortestTTL returns what TTLJitter leaves of TTL at the least.
func (o Options) shortestTTL() time.Duration {
	return o.TTL - time.Duration(o.TTLJitter*float64(o.TTL))
}

// invalid returns the error of a setting that is out of its range.
func invalid(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return fmt.Errorf("ringcache: check options: %s: %w", what, ErrInvalidOptions)
}

// tooShort returns the error of a time below the clock's tick. Who wrote 60 meant seconds.
func tooShort(field string, d time.Duration) error {
	return invalid("%s is %v, must be 0 or at least a tick of %v (60 seconds are 60 * time.Second)",
		field, d, clock.Tick)
}

// Policy is the rule by which a cache chooses what to drop when it is full.
type Policy uint8

const (
	// PolicyS3FIFO, the default, keeps entries that are read: S3-FIFO (Yang et al., SOSP 2023)
	// on byte rings, with ghosts. New entries go to a small ring first, and stay only if they
	// are read in it, so a scan does not flush the cache. The size of the small ring is learned,
	// so a key that is read only once is found if, since it was set, fewer other keys were set
	// than about 0.6 of those that the cache holds. docs/policy.md in the repository says more.
	PolicyS3FIFO Policy = Policy(policy.S3FIFO)

	// PolicyFIFO drops the oldest entry, read or not, as fastcache does. It has the
	// cheapest Set and, on most loads, the lower hit ratio. It is the better rule
	// where keys are read once, more than 0.6 of the cache after they were set.
	PolicyFIFO Policy = Policy(policy.FIFO)
)

// String returns the name of the policy.
func (p Policy) String() string {
	switch p {
	case PolicyS3FIFO:
		return "S3-FIFO"
	case PolicyFIFO:
		return "FIFO"
	default:
		return "unknown"
	}
}

// HugePages says when a cache asks for large pages of the operating system.
type HugePages uint8

const (
	// HugePagesWhenFull asks for large pages where entries have filled memory, which
	// costs nothing. The kernel then replaces small pages at its own pace, by default
	// 16 MB in 10 seconds. The index has large pages from the start if MaxBytes is
	// 128 MB or more.
	HugePagesWhenFull HugePages = HugePages(chunk.WhenFull)

	// HugePagesOff asks for small pages, also where the system gives large ones
	// unasked.
	HugePagesOff HugePages = HugePages(chunk.Never)

	// HugePagesAtOnce asks for large pages before memory is used. The price is paid while
	// the cache fills: memory comes in steps of 2 MB, each of which keeps one Set
	// waiting for 0.1 to several milliseconds.
	HugePagesAtOnce HugePages = HugePages(chunk.AtOnce)
)

// String returns the name of the setting.
func (h HugePages) String() string {
	if names := [...]string{"when full", "off", "at once"}; int(h) < len(names) {
		return names[h]
	}
	return fmt.Sprintf("HugePages(%d)", uint8(h))
}

// Compressor makes the cold part of a cache smaller (Options.Compressor). Packages
// compress/s2 and compress/zstd have one each. The methods are called without any lock, and
// may be called by several goroutines at once. A Compressor that errs, panics or returns
// other bytes costs at most that entry: it is kept uncompressed, or becomes a miss.
type Compressor interface {
	// ID names the format and its version, in up to 64 bytes. What one Compressor has
	// compressed is decompressed by another one only if both have the same ID. A cache in
	// a file that was left by another Compressor drops what that has compressed.
	ID() string

	// BuildDict returns a dictionary for values like samples, or nil if it needs none. It
	// must not keep the samples, which are of one size class: up to 128 KB together. The cache
	// keeps the dictionary, of 1 MB at most, on the Go heap, and with Options.File in the
	// file File + ".dict".
	BuildDict(samples [][]byte) []byte

	// WithDict returns a compressor of values that uses a dictionary that BuildDict has
	// returned, perhaps in another process; nil is none. The cache has up to 16 of them.
	WithDict(dict []byte) (ValueCompressor, error)
}

// ValueCompressor compresses and decompresses single values. Both methods append to dst, as
// the built-in append does, must neither keep nor change src, and are called by several
// goroutines at once.
type ValueCompressor interface {
	// Compress appends the compressed form of src to dst and returns the extended slice.
	// The cache keeps it if the record is then at least an eighth smaller.
	Compress(dst, src []byte) ([]byte, error)

	// Decompress appends the size bytes of which src is the compressed form. It must return
	// an error if src decompresses to another length, and not allocate for more: dst has room
	// for size bytes.
	Decompress(dst, src []byte, size int) ([]byte, error)
}

// RemovalReason tells why an entry was removed from the cache: see [Options].OnRemove.
type RemovalReason uint8

// The reasons why an entry is removed.
const (
	// RemovedEvicted means that the entry was evicted: the cache, or the quota of its
	// namespace, had no room left for it.
	RemovedEvicted RemovalReason = RemovalReason(store.Evicted)

	// RemovedExpired means that the entry's time to live was over. Expired entries are removed
	// when their memory is needed, which may be long after they have expired.
	RemovedExpired RemovalReason = RemovalReason(store.Expired)

	// RemovedDeleted means that the entry was deleted: by Del or GetAndDel, by an Update that
	// did not keep it, by a negative time to live, by a load that found no value, or by the
	// Invalidate or Drop of its namespace.
	RemovedDeleted RemovalReason = RemovalReason(store.Deleted)

	// RemovedReplaced means that the entry's value was replaced by another one, or removed by
	// a Set that failed.
	RemovedReplaced RemovalReason = RemovalReason(store.Replaced)

	// RemovedReset means that Reset removed the entry.
	RemovedReset RemovalReason = RemovalReason(store.Dropped)
)

// String returns the reason in one word: evicted, expired, deleted, replaced or reset.
func (r RemovalReason) String() string {
	names := [...]string{store.Unsaid: "unknown", RemovedEvicted: "evicted", RemovedExpired: "expired",
		RemovedDeleted: "deleted", RemovedReplaced: "replaced", RemovedReset: "reset"}
	if int(r) >= len(names) {
		r = RemovalReason(store.Unsaid)
	}
	return names[r]
}
