// Package ringcache implements an in-process byte cache that stores its entries outside the Go
// heap. The program sets a bound on the memory for keys, values and the index over them, and the
// garbage collector never scans that memory. The package is meant for programs that hold so many
// small entries that garbage collection becomes slow, and that must stay within a memory limit.
//
//	cache := ringcache.New(256 << 20) // at most 256 MB, index included
//	defer cache.Close()
//
//	if err := cache.Set([]byte("planet"), []byte("Saturn")); err != nil {
//		log.Print(err) // not stored; the key is now absent
//	}
//	value, ok := cache.HasGet(nil, []byte("planet"))
//	fmt.Printf("%s %v\n", value, ok)
//
// # Model
//
// An entry stays until its key is set again or deleted, it expires ([Cache.SetWithTTL]), the cache
// or its namespace is reset, or the cache needs its memory, which can happen to any
// entry at any time. By default, entries that are read stay longer; [PolicyFIFO] evicts by age
// alone. The exact eviction order is not part of the contract. Keys are compared in full, so a hit
// always returns exactly the bytes of one Set of that key. After a Set that returned nil, a Get of
// the key finds the value as long as the entry stays. Every call that may need room can
// evict entries: Set, Touch, the atomic writes below, a load, reading a snapshot, Resize, and a
// lookup that finds its entry in the cold part, which holds compressed entries
// ([Options].Compressor).
//
// Keys and values are arbitrary bytes and may be empty. A nil key is the same as an empty one, and
// an empty value is distinct from a miss. A key has at most 65,535 bytes, and a value at most 1/16
// of MaxBytes, but never more than 4 GB. Set copies its arguments, and returned slices never alias
// cache memory. A [Typed] view has keys and values of a program's own types. [Cache.Namespace] returns
// a part of a cache, which is a Cache with its own keys and statistics, and is reset in constant
// time.
//
// # Times to live
//
// The same rules apply to every time to live (TTL): to the argument of SetWithTTL, SetBatchWithTTL,
// SetIfAbsent, Touch and [Entry.SetWithTTL], to the result of a load ([LoadFunc]), and to
// [Options].TTL.
//
//   - An entry can be read for at most its TTL, unless Options.StaleIfError is set. The clock is
//     monotonic and counts in ticks of 100 ms: an entry expires on time or up to one tick early,
//     never late.
//   - An argument of 0 means that the entry never expires, and TTL and GetWithTTL return 0 for it.
//     In a field, or returned by a load, 0 means unset: without Options.TTL entries never expire,
//     and a loaded entry gets Options.TTL.
//   - A negative TTL means that the entry has already expired. Nothing is stored, an older entry of
//     the key is removed, and the call returns no error. (SetIfAbsent uses its TTL only for
//     a new entry: whatever it is, an existing one stays.)
//   - A TTL between 0 and one tick is too short to be honored. It is usually a number without a
//     unit: 60 means 60 ns. It has the effect of a negative one, and methods that return an error
//     return [ErrTTLTooShort]. (Touch returns no error; the result of a load goes to its waiting
//     callers.)
//   - An entry that would expire 13 years or more after the cache was made never expires.
//
// NewWithOptions rejects [Options] whose TTL, ExpireAfterAccess, RefreshAhead, RefreshTimeout or
// StaleIfError is negative, or is above 0 and below one tick.
//
// With [Options].ExpireAfterAccess, an entry expires when it has been neither read nor written for
// that time, or at the end of its TTL if that comes first. A read in the first half of the idle
// time does not restart it, so an entry may expire half of the idle time after its last read.
//
// # Atomic writes and loads
//
// [Cache.SetIfAbsent], [Cache.SetIfChanged], [Cache.CompareAndSwap], [Cache.Update] and
// [Cache.GetAndDel] are atomic for their key. Those that modify an existing entry count as a read
// and keep its expiry, unless Update sets another one; a new entry gets [Options].TTL, or the TTL
// that it is given. A cache may drop an entry between any two calls, so do not keep anything in it
// that must not be lost: a lock may be lost early, and a counter may start again.
//
// [Cache.GetOrLoad] and [Cache.GetOrLoadBatch] load missing values. At most one load of a key runs
// at a time, and all callers that miss on the key wait for it; a Set or Del in the meantime takes
// precedence over its result. A call returns no later than when its context ends. Loads that would
// wait for each other in a cycle get [ErrLoadCycle], provided that they pass on the context that
// they are given. With [Options].RefreshAhead, entries are loaded in the background before they
// expire. No caller waits for such a load. It has a deadline, [Options].RefreshTimeout, and is not
// retried immediately if it fails. With [Options].StaleIfError, an expired value is returned when
// its key cannot be loaded.
//
// # Concurrency
//
// All methods may be called from any number of goroutines. Keys are distributed over at most 512
// buckets, and a write locks one of them. A lookup normally takes no lock: it copies the value,
// checks that the bucket was not written to in the meantime, and retries if it was. It takes the
// bucket's lock only if other goroutines keep writing to the bucket, if the key may be that of a
// large entry, if the key overlaps the buffer it appends to, if it restarts the idle time of the
// entry ([Options].ExpireAfterAccess), or if the entry is in the cold part ([Options].Compressor).
//
// In terms of the Go memory model, a Set, Del or Reset synchronizes before a lookup that observes
// its effect. No call covers two keys at the same instant: GetBatch, GetOrLoadBatch, SetBatch, All,
// Keys, Len, Reset, Resize, Stats and UpdateStats proceed key by key or bucket by bucket,
// and may see some of the concurrent changes and not others.
//
// No lock is held while user code runs: the functions passed to Update, GetOrLoad and
// GetOrLoadBatch, [Options].OnRemove, a codec, a [Compressor], and the body of a loop. User code
// may block, panic, and call any method of the same cache. The package starts goroutines only to
// run a load, to save or load a snapshot, to open a file, and to compress: a cache with a
// Compressor has one goroutine that runs until the cache is closed or collected.
//
// # Snapshots
//
// [Cache.SaveToFile] and [Cache.Save] write the cache to a file while it is in use. The file at the
// path is always complete: the new one is written under another name, synced, and renamed. [Load],
// which is meant for the start of a service, makes a cache with the program's Options, loads every
// undamaged block of the file, and reports the defects. [LoadFromFile] makes a cache like the one
// that was saved, or fails. A snapshot restores keys, values, remaining times to live, order and
// read frequencies into a cache of any size. Times to live continue to run after the save, as they
// do in a file (see the next section). Blocks have checksums; the error for a damaged file is
// [ErrCorrupt]. [Cache.WriteSnapshot] and [Cache.ReadSnapshot] do the same with streams. A snapshot
// may hold secrets, so its mode is 0600.
//
// # Files
//
// With [Options].File, the entries are stored in a memory-mapped file. A cache that is opened on
// the same file later starts warm, however the process ended: by Close, a deploy, a panic or
// SIGKILL. Only entries that were being written at that moment are lost, and no wrong value is
// returned; [Stats] reports what was recovered. If the machine crashes while the file is open, the
// next cache starts empty, because the disk may hold pages of different ages. A file that was
// closed before the crash holds everything that the cache held at Close. In /dev/shm, the file
// occupies memory and is never written to a disk. On a disk, the kernel writes it back at its own
// pace, which costs bandwidth, and after Close the file survives a reboot.
//
// The file grows in steps of up to 64 MB and never becomes shorter, but on Linux records and index
// together use no more than the bound: space that the cache does not need becomes a hole. The
// file's header and each step add another 64 KB. (On other systems, and in caches below 64 MB, the
// index comes on top of the bound.) The index is not stored in the file. A file on a disk is read
// page by page, so reading a long value that the kernel has dropped from its page cache costs one
// disk read for each 4 KB. Each record is 4 bytes longer than in memory. Times to live continue to
// run while no process has the file open. A wall clock that is not set, or shows an earlier time
// than at Close, cannot bring back an expired entry (for one exception, see [Options].File). If
// MaxBytes is smaller than at the previous opening, OnRemove may be called before NewWithOptions
// returns. A closed cache can no longer change its file: a Set or Del after Close leaves the file's
// entries as they were.
//
// The file may hold secrets: it must belong to the user, and its mode is 0600. If another program
// truncates it, the process crashes with SIGBUS. The process would also crash if the disk had no
// room for a page that is being written. The cache therefore allocates disk space for each page
// before it uses the page; the holes of a sparse copy get theirs when the file is opened or when
// they are used. On btrfs and XFS, pages are also written in place. Disk space cannot be allocated
// in advance on other copy-on-write file systems (ZFS, APFS), nor while a btrfs snapshot or a
// reflink shares the pages: in these cases, keep at least the length of the file free on the disk.
//
// # Memory
//
// MaxBytes bounds all off-heap memory, records and index together (with File, see the section
// Files); the minimum is 256 KB. An entry
// takes its key and value, a header of 3 bytes (7 for a key of 64 bytes or more, or a value of 32
// KB or more, 16 KB with a time to live, 8 KB with an idle time; 4 more with a time to live, 8
// with an idle time), and its share of the index. Address space is reserved in mappings of up to 64
// MB, and resident memory grows as entries are stored. Each cache also uses up to 800 KB of the Go
// heap (40 KB for a cache of 1 MB), and 0.1 to 0.3 MB more for each GB above 256 MB.
//
// The memory of dead records (replaced, deleted, invalidated or expired) is reused before live
// entries are evicted, wherever at least 1/16 of the bytes are dead.
//
// [Cache.Reset] keeps the memory for new entries, [Cache.Resize] returns the memory above the new
// bound, and [Cache.Close] returns all physical memory at once. Address space is released when the
// Cache is collected. A Cache that becomes unreachable without Close releases both its memory and
// its address space when it is collected.
//
// If the operating system refuses memory, or the file system of [Options].File is full, the cache
// continues at the size that it has ([Stats].EffectiveMaxBytes), and asks for more from time to
// time.
//
// The Go runtime does not know about this memory: GOMEMLIMIT and GOGC do not count it, but a
// container's limit does. Set GOMEMLIMIT to the limit of the process minus MaxBytes, minus a tenth
// of that limit for other memory outside the heap. On Linux, memory that entries have filled is
// moved to large pages ([HugePages]).
//
// On platforms other than Linux, macOS and the BSDs, under the race detector and the sanitizers,
// and with the build tag ringcache_heap, this memory consists of a few large slices of the Go heap,
// which the collector does not scan. The build tag purego leaves out the prefetch instruction,
// which is the only assembly.
//
// # Errors
//
// The methods that store return [ErrTooLarge], [ErrNoMemory] or [ErrClosed], and those with a TTL
// also [ErrTTLTooShort], wrapped with the sizes; test for them with [errors.Is]. Each means that
// the key is now absent from the cache: an older value is removed too, so a caller that can do
// without the entry may ignore the error. After Close, lookups miss, but [Options].File keeps the
// values that it held at Close. A method call on a nil *Cache panics like any nil dereference, and
// the program can recover.
//
// # Security
//
// A random secret of the cache is mixed into every hash, so outsiders cannot choose keys that share
// a bucket, with one exception: the underlying hash is XXH64 without a seed, and keys constructed
// to collide in all of its 64 bits do share one. Such keys are never mistaken for one another and
// evict only each other and a few neighbors, and a search among them is bounded by 32 cache lines
// of the index and the 224 records that these can refer to. The bytes of deleted or dropped entries
// stay in memory until they are overwritten.
//
// # Caveats
//
// A Set of an existing key overwrites the value in place if there is room, and the entry keeps its
// position in the eviction order. New entries that are never read are evicted first; how soon is
// learned from lookups of entries that were evicted too early. If keys are read only once, and only
// after more than 60 % of the cache's size has been written since they were set, [PolicyFIFO] is
// the better choice.
//
// Large values are stored in a separate part of the cache. A value is large above 1/4096 of
// MaxBytes (in a cache below 32 MB, above 8 to 16 KB); the threshold is lower if most values are
// large. Only one Set of a large value runs at a time, and lookups of large values take a lock. A
// Cache must not be copied, and its zero value is not usable.
package ringcache
