// Package ringcache implements an in-process byte cache that stores its entries outside the Go
// heap, where the garbage collector does not scan them. You set one limit on the memory for keys,
// values and index together. Use it if you have so many small entries that they slow down garbage
// collection.
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
// An entry stays until it is replaced, deleted or reset, expires ([Cache.SetWithTTL]), or is
// evicted to make room. Any entry may be evicted at any time. Entries that are read stay longer,
// unless you choose [PolicyFIFO]; don't rely on the exact order. Any call that needs memory can
// evict entries: Set, Touch, the atomic writes below, a load, ReadSnapshot, Resize, and a lookup of
// a cold entry ([Options].Compressor). Keys are compared in full, so a hit returns exactly the
// bytes of one write of that key.
//
// Keys and values may be empty; a nil key is the same as an empty one. A key can be up to 65,535
// bytes long; a value, up to 1/16 of MaxBytes and at most 4 GB. A [Typed] view has keys and values
// of your own types. A namespace ([Cache.Namespace]) is a Cache that shares another one's memory.
//
// # Times to live
//
// The same rules apply to every time to live (TTL): the argument of SetWithTTL, SetBatchWithTTL,
// SetIfAbsent, Touch and [Entry.SetWithTTL], the result of a load ([LoadFunc]), and [Options].TTL.
//
//   - The process that set an entry never returns it after its TTL, unless Options.StaleIfError is
//     set. The clock is monotonic and ticks every 100 ms: an entry expires up to one tick early.
//   - As an argument or in Options, 0 means that entries never expire; TTL and GetWithTTL return 0
//     for them. From a load, 0 means Options.TTL.
//   - A negative TTL stores nothing, removes any existing entry of the key, and is not an error,
//     except in Options. (SetIfAbsent uses its TTL only for a new entry.)
//   - A TTL above 0 and below one tick is usually a number without a unit: 60 is 60 ns. It acts
//     like a negative one, but the methods that store return [ErrTTLTooShort].
//   - An entry that would expire 13.6 years or more after the cache was created never expires.
//
// With [Options].ExpireAfterAccess, an entry also expires if it is neither read nor written for
// that time.
//
// # Atomic writes and loads
//
// [Cache.SetIfAbsent], [Cache.SetIfChanged], [Cache.CompareAndSwap], [Cache.Update] and
// [Cache.GetAndDel] are atomic for their key. Modifying an existing entry counts as a read and
// keeps its expiry, unless Update sets another one; a new entry gets Options.TTL, unless you pass a
// TTL. An entry may be evicted between any two calls, so a lock may be lost early, and a counter
// may restart at 0.
//
// [Cache.GetOrLoad] and [Cache.GetOrLoadBatch] load missing values. Concurrent misses on a key
// share one load, for which each caller waits until its context ends. If the key is set or deleted
// meanwhile, the result is not stored, and later misses load again. With [Options].RefreshAhead, a
// hit reloads an entry in the background before it expires. With StaleIfError, an expired value is
// returned if a load fails or is slow: see docs/loading.md.
//
// # Concurrency
//
// A Cache is safe for concurrent use. Keys are spread over at most 512 buckets, and a write locks
// its key's. A lookup takes no lock, unless other goroutines keep writing to its bucket, the key
// overlaps dst, the lookup restarts an idle time ([Options].ExpireAfterAccess), or the entry is
// cold ([Options].Compressor) or may be large.
//
// In terms of the Go memory model, a Set, Del or Reset synchronizes before a lookup that observes
// its effect. Batches, loops, Len, Reset, Resize and Stats go key by key or bucket by bucket, so
// they may see some concurrent changes and miss others.
//
// No lock is held while your code runs: functions passed to Update or GetOrLoad,
// [Options].OnRemove, a codec, a [Compressor], or the body of a loop. It may block, panic, and call
// any method of the same cache. The package starts goroutines only for loads and snapshots, to open
// a file, and to compress (until the cache is closed or collected).
//
// # Snapshots
//
// [Cache.SaveToFile] and [Cache.Save] write a cache that is in use to a file. The file at the path
// is always complete: the new one is written under another name, synced, and renamed. [Load]
// returns a cache with your Options, filled from the undamaged blocks, and reports defects.
// [LoadFromFile] takes the main options from the file too, and fails on any defect.
// [Cache.WriteSnapshot] and [Cache.ReadSnapshot] use streams. A snapshot contains keys, values,
// remaining times to live, order and read frequencies, and can be loaded into a cache of any size.
// Times to live keep running after the save. A snapshot may contain secrets, so its mode is 0600.
//
// # Files
//
// With [Options].File, entries are stored in a memory-mapped file. The next cache that opens the
// file starts warm, however the process ended: by Close, a panic or SIGKILL. Only entries that were
// being written or moved at that moment are lost; [FileStats] reports what was recovered. If the
// machine crashes or restarts before Close, the next cache starts empty. A file in /dev/shm is not
// written back to a disk. A file on a disk is written back by the kernel at its own pace, and
// survives a reboot after Close.
//
// The file grows in steps of up to 64 MB; Resize doesn't shrink it. On Linux, records and index
// together use at most MaxBytes plus 0.4 MB and 64 KB per step, because unused space becomes a
// hole. (Where holes are impossible, as on other systems, and below 1 GB with pages above 4 KB, the
// index may be extra.) Times to live keep running while no process has the file open. If MaxBytes
// is lower than when the file was last open, OnRemove may be called before NewWithOptions returns.
// After Close, the cache no longer changes its file.
//
// The file may contain secrets: it must belong to the user, and its mode is 0600. If another
// program truncates it, or the disk fails to read a page, the process may crash with SIGBUS. To
// survive a full disk, the cache allocates disk space before it uses a page. Some copy-on-write
// file systems (ZFS, APFS) cannot do that, nor can others while a snapshot or a reflink shares the
// pages: there, keep at least the size of the file free on the disk.
//
// # Memory
//
// MaxBytes limits all off-heap memory, records and index together (with File, see above). An entry
// takes its key and value, a header of 3 or 7 bytes, 4 bytes for a time to live or 8 for an idle
// time, 4 for a checksum with File, 8 in a namespace, and its share of the index. Resident memory
// grows as entries are stored. Each cache also uses up to 1 MB of the Go heap (40 KB at 1 MB), and
// 0.1 to 0.3 MB more for each GB above the first; up to three times as much with values below 100
// bytes, File, StaleIfError or RefreshAhead. Once dead records (replaced, deleted, expired, or of a
// reset namespace) take up 1/16 of a bucket, few live entries are evicted before them; more with a
// Compressor, or if many expire at once.
//
// [Cache.Reset] keeps the memory for new entries, [Cache.Resize] returns the excess over the new
// limit, and [Cache.Close] returns all of it, as does the garbage collector when a Cache is
// unreachable. If the operating system provides no more memory, or the file system of
// [Options].File is full, the cache keeps working at its current size ([Stats].EffectiveMaxBytes)
// and retries regularly.
//
// GOMEMLIMIT and GOGC don't count this memory, but a container's limit does. Set GOMEMLIMIT to the
// limit of the process minus MaxBytes, minus a tenth of that limit for other memory outside the
// heap. On platforms other than Linux, macOS and the BSDs, under the race detector and the
// sanitizers, and with the build tag ringcache_heap, the cache uses a few large slices on the Go
// heap instead, which the collector does not scan.
//
// # Errors
//
// Methods that store return [ErrTooLarge], [ErrNoMemory], [ErrClosed], [ErrDropped] or, with a TTL,
// [ErrTTLTooShort], wrapped with the sizes; test for them with [errors.Is]. After an error the key
// is absent, because any older value goes too: ignore the error if you can do without the entry.
// (An atomic write of a Typed view that cannot encode or decode a value changes nothing.) After
// Close, lookups miss.
//
// # Security
//
// A random secret is mixed into every hash, so outsiders cannot choose keys that share a bucket,
// except keys that collide in all 64 bits of the underlying XXH64. Such keys evict only each other
// and a few neighbors, and a search among them examines at most 448 records. The bytes of removed
// entries stay in memory until overwritten or freed.
//
// # Caveats
//
// New entries that are not read are evicted first; the cache learns how soon from misses on evicted
// keys. If keys are read only once, after more than 60 % of the cache's size has been written since
// their Set, use PolicyFIFO.
//
// Values above 1/4096 of MaxBytes (16 to 32 KB if made below 64 MB; less if most values are large)
// are stored separately. Sets of these large values run one at a time, and their lookups take a
// lock.
package ringcache
