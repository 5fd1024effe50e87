package ringcache

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/sidefile"
	"github.com/ringcache/ringcache/internal/store"
)

// Bounds on Options.MaxBytes. A cache has 512 buckets if each of them can have minBucketBytes, and
// fewer otherwise: with less memory, a bucket would hold too few entries for the policy to choose
// among.
const (
	minBucketBytes = 128 << 10
	maxBucketBytes = 8 << 30 // an eighth of the range of positions (I3)

	minMaxBytes = 2 * minBucketBytes
	maxMaxBytes = store.BucketCount * maxBucketBytes
)

const defaultRefreshTimeout = 30 * time.Second

// Options are the settings of a cache. The zero value of each field except MaxBytes selects its
// default. Durations other than SoftTimeout must be 0 or at least one tick of the clock, 100 ms.
type Options struct {
	// MaxBytes limits the memory for records and index together, except during [Cache.Resize], and as
	// Memory in the package documentation says. It is required, from 256 KB to 4 TB. A cache made
	// below 64 MB has fewer buckets, so fewer goroutines can write at the same time.
	MaxBytes int

	// Policy chooses the entries that a full cache evicts.
	Policy Policy

	// TTL is the time to live where none is given or kept. The default, 0, means none. See Times to
	// live in the package documentation.
	TTL time.Duration

	// TTLJitter is the largest random fraction subtracted from a TTL, below 1, so that entries stored
	// together expire at different times. It applies to TTL and to the TTL returned by a load
	// ([LoadFunc]), not to one that is an argument.
	TTLJitter float64

	// ExpireAfterAccess is the idle time: an entry that is neither read nor written for that long
	// expires. A write restarts the idle time, and so does a read in its second half, so an entry may
	// expire early by half the idle time (at least one tick). Reads are Get and its variants, Has,
	// GetOrLoad, their batches, and writes that inspect the old value, but not Peek, TTL, loops,
	// snapshots and lookups of negative entries.
	//
	// An entry that also has a TTL expires at the earlier of the two deadlines, and [Cache.TTL]
	// returns the time until then. Touch sets the TTL and restarts the idle time. Snapshots and File
	// keep both deadlines. Entries that a File has without an idle time get one when they are
	// written. Records are up to 12 bytes longer.
	ExpireAfterAccess time.Duration

	// RefreshAhead is how long before its expiry an entry is due for a refresh: a hit by
	// [Cache.GetOrLoad] or GetOrLoadBatch then usually starts a load in the background, unless one
	// runs or has just ended, and does not wait for it. (In the terms of stale-while-revalidate, the
	// entry is fresh for TTL minus RefreshAhead, then stale for RefreshAhead.) It must be less than
	// TTL x (1 - TTLJitter), and less than half of ExpireAfterAccess, if these are set. To log a
	// panic, recover in the load.
	RefreshAhead time.Duration

	// RefreshTimeout is the deadline of refreshes: loads of entries that are due (RefreshAhead) or
	// stale (StaleIfError), which no caller's context alone cancels. The default is 30 seconds. Other
	// loads have no deadline; their context ends when the last caller stops waiting.
	RefreshTimeout time.Duration

	// StaleIfError is how long after its expiry an entry may be kept as a stale value.
	// [Cache.GetOrLoad] and [Cache.GetOrLoadBatch] return it when the load fails, the caller's context
	// ends, or SoftTimeout passes. After a failed or slow load, they usually return it at once, and
	// retry the load in the background after growing pauses. A caller waiting for a load that panics,
	// exits its goroutine or finds no value does not get it. All other lookups and writes treat the
	// entry as absent. It is not saved in snapshots, and not found again in [Options].File.
	StaleIfError time.Duration

	// SoftTimeout is how long a call waits at most for the load of a key that has a stale value
	// (StaleIfError). The default, 0, means RefreshTimeout; if negative, there is no wait.
	SoftTimeout time.Duration

	// OnRemove, if not nil, is called once for each removed entry: evicted, expired, deleted, replaced
	// or reset. It is not called for negative entries ([ErrAbsent]), or those that remain at Close,
	// are damaged, or do not come back when File is opened. It may keep key and value: copies.
	//
	// OnRemove runs in the goroutine whose call or load removed the entry, before that call returns
	// (in a batch load, usually once all values are stored), with no lock held. It may call any method
	// of the cache, but may never end if it waits for the load that called it, or sets each evicted
	// entry again. The key may have been set again by then. A panic leaves the cache consistent, but
	// OnRemove may then not be called for other entries that the call has removed, and a value for
	// which entries were evicted might not be stored.
	OnRemove func(Removal)

	// HugePages determines when the cache asks the operating system for large pages, which can speed
	// up reads and overwrites spread over hundreds of megabytes. It has an effect only on Linux with
	// transparent huge pages set to madvise or always.
	HugePages HugePages

	// File, if not empty, is the path of a file that holds the entries: see the section Files of the
	// package documentation. It is created with mode 0600 if it does not exist; its directory must
	// exist. A Compressor's dictionaries are stored beside it in a file with the suffix ".dict", and
	// the names of namespaces in one with ".names". A relative path is resolved once, when the cache
	// is created. If it is a symbolic link, that is followed if possible. On a machine, only one
	// cache at a time can use a file; others get [ErrInUse].
	//
	// All files must be regular, and owned by the effective user, even if that is root; otherwise the
	// error states the kind of file, or is [os.ErrPermission]. Group and other permissions are
	// removed. If a file holds other data, the error is usually [ErrCorrupt]. A rejected file is left
	// unchanged. MaxBytes may change from one opening to the next, within the limits of
	// [Cache.Resize]. Linux, macOS and the BSDs support File; on Windows, for example, the error is
	// [errors.ErrUnsupported].
	//
	// Expired entries do not come back. If it is unknown how much time has passed, as when the wall
	// clock was set back, entries with an expiry are dropped. A wall clock that is behind after a
	// reboot, yet later than at Close, cannot be detected.
	File string

	// Version identifies the meaning of the entries: change it when you change the encoding of values,
	// for example. A File with a different Version is emptied when it is opened
	// ([FileStats].DiscardedFiles), and a snapshot with a different one is rejected with [ErrVersion],
	// so that an updated or rolled-back program does not misread entries. [LoadFromFile] accepts only
	// the default, 0.
	Version uint64

	// Compressor, if not nil, can let a cache hold more entries. Values that would be evicted can be
	// kept in a cold part, up to about half of the memory, compressed if they become small enough. A
	// Get of a cold value locks the bucket and, if needed, decompresses it, often within
	// microseconds; the second one usually moves it back. See package
	// [github.com/ringcache/ringcache/compress/s2].
	//
	// One goroutine compresses, until the cache is closed or collected. Sets do not wait for it, but
	// they move the values that they would otherwise evict, and take longer. Dictionaries and
	// buffers, usually up to 10 MB, are on the Go heap. Large values (see Caveats in the package
	// documentation) are usually not compressed.
	Compressor Compressor

	// ExpectedEntries, unless 0, is the approximate number of entries that the cache will hold. The
	// index of an empty cache then usually begins with room for them, up to about a sixth of MaxBytes,
	// instead of growing in steps, unless they are large (see Caveats in the package documentation).
	// Overestimating wastes memory.
	ExpectedEntries int
}

// validate returns an error that names the first invalid field and its bound.
func (o Options) validate() error {
	if n := int64(o.MaxBytes); n < minMaxBytes || n > maxMaxBytes {
		return invalid("MaxBytes is %d bytes, must be from %d to %d (256 MB are 256 << 20)",
			n, minMaxBytes, int64(maxMaxBytes))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"TTL", o.TTL}, {"ExpireAfterAccess", o.ExpireAfterAccess}, {"RefreshAhead", o.RefreshAhead},
		{"RefreshTimeout", o.RefreshTimeout}, {"StaleIfError", o.StaleIfError},
	} {
		if d.value != 0 && d.value < clock.Tick { // perhaps a plain 60, meant as seconds
			return invalid("%s is %v, must be 0 or at least a tick of %v (60 seconds are 60 * time.Second)",
				d.field, d.value, clock.Tick)
		}
	}
	idle, ahead := o.ExpireAfterAccess, o.RefreshAhead
	shortest := o.TTL - time.Duration(o.TTLJitter*float64(o.TTL))
	switch {
	case o.Policy > PolicyFIFO:
		return invalid("Policy is %d, must be %v or %v", o.Policy, PolicyS3FIFO, PolicyFIFO)
	case o.HugePages > HugePagesAtOnce:
		return invalid("HugePages is %d, must be %v, %v or %v", o.HugePages,
			HugePagesWhenFull, HugePagesOff, HugePagesAtOnce)
	case o.ExpectedEntries < 0:
		return invalid("ExpectedEntries is %d, must be at least 0", o.ExpectedEntries)
	case !(o.TTLJitter >= 0 && o.TTLJitter < 1): // nor NaN
		return invalid("TTLJitter is %v, must be at least 0 and below 1", o.TTLJitter)
	case ahead > 0 && idle > 0 && ahead >= idle/2:
		return invalid("RefreshAhead is %v, must be below half of ExpireAfterAccess of %v", ahead, idle)
	case ahead > 0 && o.TTL > 0 && ahead >= shortest:
		return invalid("RefreshAhead is %v, must be below TTL of %v less TTLJitter, %v",
			ahead, o.TTL, shortest)
	}
	return nil
}

// Policy is the rule by which a full cache chooses the entries to evict.
type Policy uint8

const (
	// PolicyS3FIFO, the default, prefers entries that are read (S3-FIFO, Yang et al., SOSP 2023). In a
	// full cache, new entries that are not read are usually evicted first, so a scan seldom flushes
	// the cache. See docs/policy.md.
	PolicyS3FIFO Policy = Policy(policy.S3FIFO)

	// PolicyFIFO usually drops old entries first, read or not. (An overwrite may not renew an entry.)
	// Its Sets are usually cheaper. Its hit ratio is usually lower, unless keys are read only once,
	// long after their Set.
	PolicyFIFO Policy = Policy(policy.FIFO)
)

// String returns the name of the policy.
func (p Policy) String() string { return nameOf(int(p), "S3-FIFO", "FIFO") }

// nameOf returns the name of a value of an enumeration.
func nameOf(value int, names ...string) string {
	if value < len(names) {
		return names[value]
	}
	return "unknown"
}

// HugePages determines when a cache asks the operating system for large pages
// ([Options].HugePages). With Options.File it concerns only the index.
type HugePages uint8

const (
	// HugePagesWhenFull, the default, usually asks, from 128 MB on, for large pages for the index and,
	// without Options.File, for memory that entries have filled.
	HugePagesWhenFull HugePages = HugePages(chunk.WhenFull)

	// HugePagesOff asks for small pages, even if the system provides large ones by default.
	HugePagesOff HugePages = HugePages(chunk.Never)

	// HugePagesAtOnce asks for large pages before memory is first used, which can delay some Sets by
	// milliseconds.
	HugePagesAtOnce HugePages = HugePages(chunk.AtOnce)
)

// String returns the name of the setting.
func (h HugePages) String() string { return nameOf(int(h), "when full", "off", "at once") }

// Compressor compresses the cold part of a cache ([Options].Compressor). Packages compress/s2 and
// compress/zstd provide one each. The methods may run concurrently, and no lock is held while they
// do. If compression or decompression of a value fails, panics or returns wrong bytes, the value is
// kept uncompressed, or becomes a miss. A Compressor must not call runtime.Goexit.
type Compressor interface {
	// ID names the format and its version, in up to 64 bytes. Values compressed by one Compressor can
	// be decompressed by another only if both have the same ID. A cache that opens a file drops
	// entries that were compressed under a different ID; without a Compressor, the whole cold part.
	ID() string

	// BuildDict returns a dictionary for values like samples, of at most 1 MB, or nil if it needs
	// none. The samples, at most 128 KB in total, must not be kept.
	BuildDict(samples [][]byte) []byte

	// WithDict returns a compressor of values with a dictionary that BuildDict returned, possibly in
	// another process; nil means no dictionary. A cache uses at most 16 such compressors, one of them
	// without a dictionary.
	WithDict(dict []byte) (ValueCompressor, error)
}

// ValueCompressor compresses and decompresses single values. Both methods append to dst, must
// neither keep nor modify src, and may be called concurrently.
type ValueCompressor = interface {
	// Compress appends the compressed form of src to dst and returns the extended slice. The cache
	// does not use it if it saves little.
	Compress(dst, src []byte) ([]byte, error)

	// Decompress appends the decompressed form of src, size bytes, to dst, which has room for it. It
	// must return an error if src decompresses to a different length, and must not append more than
	// size bytes.
	Decompress(dst, src []byte, size int) ([]byte, error)
}

// Removal is an entry that was removed from the cache: see [Options].OnRemove.
type Removal struct {
	Namespace  string // empty if the entry was in none
	Key, Value []byte // as they were set
	Reason     RemovalReason
}

// RemovalReason is the reason why an entry was removed.
type RemovalReason uint8

// The reasons for removing an entry.
const (
	RemovedEvicted  RemovalReason = RemovalReason(store.Evicted)  // to make room
	RemovedExpired  RemovalReason = RemovalReason(store.Expired)  // perhaps long ago
	RemovedDeleted  RemovalReason = RemovalReason(store.Deleted)  // also with its namespace
	RemovedReplaced RemovalReason = RemovalReason(store.Replaced) // also by a Set that failed
	RemovedReset    RemovalReason = RemovalReason(store.Dropped)  // by Reset of the whole cache
)

// String returns a word for the reason, such as evicted.
func (r RemovalReason) String() string {
	return nameOf(int(r), "unknown", "evicted", "expired", "deleted", "replaced", "reset")
}

// chunksPerBucket is the least number of chunks of a bucket in a new cache, which keeps the loss
// from rounding its share small. Caches below 1 GB have smaller chunks to reach it.
const chunksPerBucket = 32

// geometry is everything that shapes a cache. Tests make tiny ones.
type geometry struct {
	Options
	config    store.Config   // what is not set by newShared
	least     int            // the least bound
	machine   *clock.Machine // nil: the real one
	chunkSize int            // power of two, at least 64
	mem       chunk.Memory
	names     *sidefile.File // the generations of namespaces
	cold      cold.Config
	byHand    bool // no goroutine: a test compresses
}

// geometryFor returns the geometry of a cache with valid settings.
func geometryFor(o Options) geometry {
	g := geometry{
		Options: o,
		config:  store.Config{PosBits: index.PosBits, Seed: newSecret()},
		least:   minMaxBytes,
		mem:     systemMemory(),
	}
	g.divide(o.MaxBytes)
	return g
}

// divide sets the number of buckets and their chunks' size for so many bytes.
func (g *geometry) divide(bytes int) {
	g.config.Buckets = min(1<<(bits.Len(uint(bytes/minBucketBytes))-1), store.BucketCount)
	share := bytes / g.config.Buckets / chunksPerBucket
	g.chunkSize = min(1<<(bits.Len(uint(share))-1), chunk.MaxSize)
}

// newSecret returns a random secret, which is mixed into every hash so that outsiders can hardly
// choose keys that share a bucket. Each new cache draws one, because files and snapshots reveal it.
func newSecret() (s [2]uint64) {
	for !isSecret(s) {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		s = [2]uint64{binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[8:]) | 1}
	}
	return s
}

// isSecret reports whether s is usable as a secret: the second word, a multiplier, must be odd, and
// must have neither too few bits set nor too many, as fewer than one random word in ten thousand
// has. With all bits set, for example, nearly all hashes would be equal.
func isSecret(s [2]uint64) bool {
	n := bits.OnesCount64(s[1])
	return s[1]&1 == 1 && 15 < n && n < 49
}

// newShared returns the state that the buckets of a cache of this geometry share.
func (g *geometry) newShared() *store.Shared {
	c := g.config
	if c.Born.IsZero() {
		c.Born = clock.Born(time.Now())
	}
	c.Policy, c.Expected, c.Notifies = policy.Kind(g.Policy), g.ExpectedEntries, g.OnRemove != nil
	c.Expiries = clock.Settings{Jitter: g.TTLJitter, Grace: g.StaleIfError, Idle: g.ExpireAfterAccess}
	pool := chunk.NewPool(g.mem, g.MaxBytes, g.chunkSize, chunk.HugePages(g.HugePages))
	return store.NewShared(c, pool, g.MaxBytes)
}
