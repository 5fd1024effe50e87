// Package ringcache implements an in-process byte cache that stores its entries where the garbage
// collector does not scan them, usually outside the Go heap. You set one limit on the memory for
// keys, values and index together. Use it if you have so many small entries that they slow down
// garbage collection.
//
//	cache := ringcache.New(256 << 20) // 256 MB, index included
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
// Any entry may be evicted at any time to make room: by Set, Touch, the atomic writes below, a
// load, ReadSnapshot, Resize, or a lookup with [Options].Compressor, for example. Entries that are
// read usually stay longer, unless you choose [PolicyFIFO]; don't rely on the exact order. Keys are
// compared in full, so a hit returns exactly the bytes of one write of that key.
//
// Keys and values may be empty; a nil key is the same as an empty one. A key can be up to 65,535
// bytes long (65,527 in a namespace); a new value, up to 1/16 of MaxBytes and less than 4 GB. A
// [Typed] view has values of your own type, and string, []byte or integer keys. A namespace
// ([Cache.Namespace]) is a Cache that shares another one's memory.
//
// # Times to live
//
// These rules apply to every time to live (TTL): the argument of SetWithTTL, SetBatchWithTTL,
// SetIfAbsent, Touch and [Entry.SetWithTTL], the result of a load ([LoadFunc]), and [Options].TTL.
//
//   - In the cache that set it, unless the machine sleeps, an entry expires by a monotonic clock:
//     after its TTL, less any Options.TTLJitter, or up to one tick of 100 ms earlier. With
//     StaleIfError, it may be returned later.
//   - As an argument or in Options, 0 means no TTL. From a load, 0 means Options.TTL.
//   - As an argument, a negative TTL stores nothing, removes any existing entry of the key, and is
//     not an error. (SetIfAbsent uses its TTL only for a new entry.)
//   - A TTL above 0 and below one tick is usually a number without a unit: 60 is 60 ns. As an
//     argument it also removes the entry, and the methods that store return [ErrTTLTooShort].
//   - An entry that would expire more than 6.8 years after the cache was created may never expire.
//
// With [Options].ExpireAfterAccess, idle entries expire too.
//
// # Atomic writes and loads
//
// [Cache.SetIfAbsent], [Cache.SetIfChanged], [Cache.CompareAndSwap], [Cache.Update] and
// [Cache.GetAndDel] are atomic for their key. An existing entry that they modify keeps its TTL,
// unless Update sets another one; a new entry gets the TTL that you pass, or else Options.TTL. An
// entry may be evicted between any two calls, so a lock may be lost early, and a counter may
// restart at 0.
//
// [Cache.GetOrLoad] and [Cache.GetOrLoadBatch] load missing values. Concurrent misses on a key
// usually share one load. If the key is set or deleted meanwhile, the result is not stored, and
// later misses load again. With [Options].RefreshAhead, a hit can reload an entry in the background
// before it expires. With StaleIfError, an expired value may be returned if a load fails or is
// slow: see docs/loading.md.
//
// # Concurrency
//
// A Cache is safe for concurrent use. Keys are spread over buckets, and a write locks its key's. A
// lookup usually takes no lock; it may if other goroutines write to its bucket, the key overlaps
// dst, the lookup restarts an idle time ([Options].ExpireAfterAccess), or the entry is cold
// ([Options].Compressor) or may be large.
//
// In terms of the Go memory model, a Set or Del synchronizes before a lookup that observes its
// effect. Batches, loops, Len, Reset, Resize and Stats may see some concurrent changes and miss
// others.
//
// Your code is called with no mutex held: functions passed to Update or GetOrLoad,
// [Options].OnRemove, a codec, a [Compressor], or the body of a loop. It may block, panic, and call
// any method of the same cache, but not wait for itself. The package starts goroutines only for
// loads and snapshots, to open a file, and to compress (until the cache is closed or collected).
//
// # Snapshots
//
// [Cache.SaveToFile] and [Cache.Save] write a cache that is in use to a file. They write under
// another name, and replace an older file only once the new one is complete. [Load] uses your
// Options, loads what it can, and reports defects. [LoadFromFile] takes the main options from the
// file too, and fails on defects. [Cache.WriteSnapshot] and [Cache.ReadSnapshot] use streams. A
// snapshot contains keys, values, remaining times to live, rough order and read frequencies, and
// can be loaded into a cache of any size. Times to live keep running after the save. A snapshot may
// contain secrets; on Unix, Save gives its file mode 0600.
//
// # Files
//
// With [Options].File, entries are stored in a memory-mapped file. The next cache that opens the
// file usually starts warm, however the process ended: by Close, a panic or SIGKILL. Entries that
// were being written at that moment may be lost; [FileStats] reports what was recovered. If the
// machine crashes or restarts before Close, the next cache starts empty. A file on a disk, not
// in /dev/shm, can survive a reboot after Close.
//
// The file grows in steps of up to about 64 MB; Resize doesn't shorten it. On Linux, records and
// index together usually use little more than MaxBytes, because unused space becomes a hole; where
// holes are impossible, the index may be extra. Times to live keep running while no process has the
// file open. If MaxBytes is lower than when the file was last open, OnRemove may be called before
// NewWithOptions returns. After Close, the cache no longer changes its file.
//
// The file may contain secrets: it must belong to the user, and its mode is 0600. If another
// program truncates it, or the disk fails to read a page, the process may crash with SIGBUS. To
// survive a full disk, the cache allocates disk space before it uses a page. Some copy-on-write
// file systems (ZFS, APFS) cannot do that, nor can others while a snapshot or a reflink shares the
// pages: there, keep at least the size of the file free on the disk.
//
// # Memory
//
// MaxBytes limits the memory for records and index together; more may be in use with File (see
// above) and Resize, by concurrent writes (a few chunks of 64 KB), on the Go heap, and where system
// pages exceed 4 KB. An entry takes its key and (perhaps compressed) value, a header of 3 or 7
// bytes, 4 bytes for a time to live or 8 for an idle time (perhaps a former one), 4 for a checksum
// with File, 8 in a namespace, and its share of the index. Each cache also uses some of the Go
// heap, usually up to 3 MB and 1 MB for each GB; namespaces and a Compressor use more. Dead records
// (replaced, deleted, expired, or of a reset namespace) are usually reclaimed before live entries
// are evicted.
//
// [Cache.Reset] keeps the memory for new entries. [Cache.Resize] returns excess memory if it can.
// [Cache.Close] returns that of records and index, except in a File, as does the garbage collector
// when a Cache is unreachable. If the operating system refuses more memory off the heap, or the
// file system of [Options].File is full, the cache keeps working with what it has
// ([Stats].EffectiveMaxBytes) and retries now and then.
//
// GOMEMLIMIT and GOGC don't count memory off the heap, but a container's limit does. Set GOMEMLIMIT
// to the limit of the process minus memory off the heap: MaxBytes, and a tenth of that limit for
// other memory. On Windows and some other platforms, under the race detector and the sanitizers,
// and with the build tag ringcache_heap, memory that is not in a File consists of large slices on
// the Go heap, which the collector does not scan.
//
// # Errors
//
// Methods that store return [ErrTooLarge], [ErrNoMemory], [ErrClosed], [ErrDropped] or, with a TTL,
// [ErrTTLTooShort], wrapped; test for them with [errors.Is]. An entry with an error is not stored,
// and any older value goes too (but stays in the File of a closed cache): ignore the error if you
// can do without the entry. (After [ErrEncode] or [ErrDecode], the atomic writes of a Typed view
// leave the entry, except GetAndDel.) After Close, lookups miss.
//
// # Security
//
// A random secret is mixed into every hash, so outsiders can hardly choose keys that share a
// bucket, except keys that collide in all 64 bits of the underlying XXH64. The bytes of removed
// entries stay in memory until overwritten or freed.
//
// # Caveats
//
// With [PolicyS3FIFO], new entries that are not read are usually evicted first.
//
// Large values, above about 1/4096 of MaxBytes (more if made below 64 MB; less if entries are long
// on average), are usually stored separately. Their Sets usually run one at a time.
package ringcache
