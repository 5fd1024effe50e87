// Package ringcache implements an in-process byte cache that stores its entries outside the Go
// heap, where the garbage collector does not scan them. You set a bound on the memory for keys,
// values and their index. Use it if you have so many small entries that garbage collection is slow.
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
// or its namespace is reset, or the cache needs its memory, which can happen to any entry at any
// time. Entries that are read stay longer, unless you choose [PolicyFIFO]; don't rely on the exact
// order. Any call that needs memory can evict entries: Set, Touch, the atomic writes below, a load,
// reading a snapshot, Resize, and a lookup in the cold part ([Options].Compressor). Keys are
// compared in full, so a hit returns exactly the bytes of one Set of that key.
//
// Keys and values may be empty; a nil key is the same as an empty one. A key can be up to 65,535
// bytes long, and a value up to 1/16 of MaxBytes, but no more than 4 GB. A [Typed] view has keys
// and values of your own types. A namespace ([Cache.Namespace]) is a Cache that shares the memory
// of another one.
//
// # Times to live
//
// The same rules apply to every time to live (TTL): the argument of SetWithTTL, SetBatchWithTTL,
// SetIfAbsent, Touch and [Entry.SetWithTTL], the result of a load ([LoadFunc]), and [Options].TTL.
//
//   - An entry can be read for at most its TTL, unless Options.StaleIfError is set. The clock is
//     monotonic and counts in ticks of 100 ms: an entry expires up to one tick early, never late.
//   - As an argument, 0 means that the entry never expires, and TTL and GetWithTTL return 0 for it.
//     In a field or from a load, 0 means unset: a loaded entry gets Options.TTL, and without that
//     entries never expire.
//   - With a negative TTL nothing is stored, an older entry of the key is removed, and there is no
//     error. (SetIfAbsent uses its TTL only for a new entry.)
//   - A TTL between 0 and one tick usually lacks a unit: 60 means 60 ns. It acts like a negative
//     one, but methods that return an error return [ErrTTLTooShort].
//   - An entry that would expire 13.6 years or more after the cache was made never expires.
//
// With [Options].ExpireAfterAccess, an entry also expires if it is neither read nor written for
// that time.
//
// # Atomic writes and loads
//
// [Cache.SetIfAbsent], [Cache.SetIfChanged], [Cache.CompareAndSwap], [Cache.Update] and
// [Cache.GetAndDel] are atomic for their key. Those that modify an existing entry count as a read
// and keep its expiry, unless Update sets another one; a new entry gets Options.TTL, unless you
// pass a TTL. An entry may be evicted between any two calls: you may lose a lock early, and a
// counter may start again.
//
// [Cache.GetOrLoad] and [Cache.GetOrLoadBatch] load missing values. At most one load of a key runs
// at a time, and callers that miss on the key wait for it until their context ends. A Set or Del in
// the meantime takes precedence over the result. [Options].RefreshAhead loads entries in the
// background before they expire. With StaleIfError, an expired value is returned if a load fails or
// is slow: see docs/loading.md.
//
// # Concurrency
//
// All methods may be called from any number of goroutines. Keys are distributed over at most 512
// buckets, and a write locks one of them. A lookup takes no lock, unless other goroutines keep
// writing to its bucket, the key overlaps the buffer that is appended to, or the entry may be
// large, is compressed ([Options].Compressor), or gets a new idle time
// ([Options].ExpireAfterAccess).
//
// In terms of the Go memory model, a Set, Del or Reset synchronizes before a lookup that observes
// its effect. Batches, loops, Len, Reset, Resize and Stats proceed key by key or bucket by bucket,
// and may see only some concurrent changes.
//
// No lock is held while your code runs: functions passed to Update and to loads,
// [Options].OnRemove, a codec, a [Compressor], and the body of a loop. Your code may block, panic,
// and call any method of the same cache. The package starts goroutines only to load, to save and
// load snapshots, to open a file, and, until the cache is closed or collected, to compress.
//
// # Snapshots
//
// [Cache.SaveToFile] and [Cache.Save] write the cache to a file while it is in use. The file at the
// path is always complete: the new one is written under another name, synced, and renamed. [Load]
// makes a cache with your Options, loads every undamaged block, and reports the defects.
// [LoadFromFile] makes a cache like the one that was saved, or fails. [Cache.WriteSnapshot] and
// [Cache.ReadSnapshot] use streams. A snapshot has keys, values, remaining times to live, order and
// read frequencies, and can be loaded into a cache of any size. Times to live keep running after
// the save. A snapshot may hold secrets, so its mode is 0600.
//
// # Files
//
// With [Options].File, the entries are stored in a memory-mapped file. A cache opened on that file
// later starts warm, however the process ended: by Close, a deploy, a panic or SIGKILL. Only
// entries that were being written at that moment are lost; [FileStats] reports what was recovered.
// If the machine crashes while the file is open, the next cache starts empty. In /dev/shm, the file
// is never written to a disk. On a disk, the kernel writes it back at its own pace, and after Close
// it survives a reboot.
//
// The file grows in steps of up to 64 MB and never shrinks. On Linux, records and index together
// use no more than the bound plus 64 KB for each step, because unused space becomes a hole. (On
// other systems, and in caches below 64 MB, the index comes on top.) Times to live keep running
// while no process has the file open. If MaxBytes is smaller than when the file was last open,
// OnRemove may be called before NewWithOptions returns. A closed cache can no longer change its
// file.
//
// The file may hold secrets: it must belong to the user, and its mode is 0600. If another program
// truncates it, or the disk fails to read a page, the process crashes with SIGBUS. A full disk
// would do the same, so the cache allocates disk space before it uses a page. Some copy-on-write
// file systems (ZFS, APFS) cannot do that, nor can others while a snapshot or a reflink shares the
// pages: there, keep at least the length of the file free on the disk.
//
// # Memory
//
// MaxBytes bounds all off-heap memory, records and index together (with File, see above). An entry
// needs memory for its key and value, a header of 3 or 7 bytes, 4 more with a time to live or 8
// with an idle time, and its share of the index. Resident memory grows as entries are stored. Each
// cache also uses up to 800 KB of the Go heap (40 KB for a cache of 1 MB), and 0.1 to 0.3 MB more
// for each GB above 256 MB. The memory of dead records (replaced, deleted, expired, or of a
// namespace that was reset) is reused before live entries are evicted, if at least 1/16 of the
// bytes are dead.
//
// [Cache.Reset] keeps the memory for new entries, [Cache.Resize] returns the excess over the new
// bound, and [Cache.Close] returns all of it, as does the garbage collection of an unreachable
// Cache. If the operating system refuses memory, or the file system of [Options].File is full, the
// cache keeps working at its current size ([Stats].EffectiveMaxBytes), and asks again regularly.
//
// GOMEMLIMIT and GOGC don't count this memory, but a container's limit does. Set GOMEMLIMIT to the
// limit of the process minus MaxBytes, minus a tenth of that limit for other memory outside the
// heap. On platforms other than Linux, macOS and the BSDs, under the race detector and the
// sanitizers, and with the build tag ringcache_heap, this memory consists of a few large slices of
// the Go heap, which the collector does not scan.
//
// # Errors
//
// The methods that store return [ErrTooLarge], [ErrNoMemory] or [ErrClosed], and with a TTL also
// [ErrTTLTooShort], wrapped with the sizes; test for them with [errors.Is]. After an error the key
// is absent, because the older value is removed too. So you may ignore the error if you can do
// without the entry. After Close, lookups miss.
//
// # Security
//
// A random secret is mixed into every hash, so outsiders cannot choose keys that share a bucket,
// except keys that collide in all 64 bits of the underlying XXH64. Such keys evict only each other
// and a few neighbors, and a search among them examines at most 224 records. The bytes of removed
// entries stay in memory until they are overwritten.
//
// # Caveats
//
// New entries that are not read are evicted first; the cache learns how soon from misses of evicted
// keys. If your keys are read only once, after more than 60 % of the cache's size has been written
// since, use PolicyFIFO.
//
// Values above 1/4096 of MaxBytes (in a cache below 64 MB, above 16 to 32 KB; less if most values
// are large) are stored in a separate part of the cache. Only one Set of a large value runs at a
// time, and lookups of large values take a lock.
package ringcache
