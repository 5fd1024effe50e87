// Package ringcache is a cache of byte slices that lies outside of the Go heap. Keys,
// values and the index over them are in memory with a bound that the program sets, and
// the garbage collector does not see them. It is meant for programs that hold so many
// small entries that collections take long, and that must not outgrow their memory limit.
//
//	cache := ringcache.New(256 << 20) // at most 256 MB, index included
//	defer cache.Close()
//
//	if err := cache.Set([]byte("planet"), []byte("Saturn")); err != nil {
//		log.Print(err) // not stored, and nothing else is harmed
//	}
//	value, ok := cache.HasGet(nil, []byte("planet"))
//	fmt.Printf("%s %v\n", value, ok)
//
// # Model
//
// An entry stays until its key is set again or deleted, it expires ([Cache.SetWithTTL]),
// the cache is reset, or room is needed: a cache may drop any entry at any time. By
// default what is read stays longer; [PolicyFIFO] goes by age alone. The exact order is
// not part of the contract. A hit is always exactly the bytes of one Set of that key,
// since keys are compared in full. After a Set that returned nil, the next Get of the key
// finds the value, unless it has expired, or has been evicted since. Sets evict, and so does every
// other call that may need room: Touch, the writes below, a load, a snapshot that is read, Resize,
// and with a [Compressor] a lookup that finds an entry in the cold part.
//
// Any bytes will do as key or value, or none: nil and empty are the same key, and an
// empty value is a value. A key has at most 65,535 bytes, a value at most a sixteenth of
// MaxBytes. Set copies what it is given, and nobody ever holds memory of the cache.
// [Typed] is a view with keys and values of a program's own types. A [Namespace] is a part
// of a cache with a quota, whose entries can be invalidated all at once, in constant time.
//
// # Times to live
//
// The same rules apply to every TTL: those of SetWithTTL, SetBatchWithTTL, SetIfAbsentWithTTL,
// UpdateWithTTL and Touch, of a load ([LoadFunc]), and [Options].TTL.
//
//   - An entry is there for its TTL at most. The clock is monotonic and counts ticks of 100 ms: an
//     entry expires on time or up to a tick early, never late.
//   - An argument of 0 means that the entry never expires, and TTL and GetWithTTL return 0 for it.
//     A field of 0 is unset: without Options.TTL entries never expire, and a load without a TTL
//     gives the entry Options.TTL.
//   - A negative TTL is over. Nothing is stored, an older entry of the key is removed, and the call
//     returns no error.
//   - A TTL above 0 and below a tick cannot be kept, and most often lacks a unit: 60 is 60 ns. It
//     has the effect of a negative one, and is also an error, [ErrTTLTooShort], where the call
//     returns one. (Touch does not; the result of a load goes to those who wait for it.)
//   - An entry that would expire 13 years or more after the cache was made never expires.
//
// [Options] with a TTL that is negative or below a tick are refused, and so are those of
// ExpireAfterAccess, RefreshAhead and StaleIfError.
//
// With [Options].ExpireAfterAccess an entry expires when it has not been read or written for that
// time, and at the end of its TTL if that comes first.
//
// # Atomic writes and loads
//
// [Cache.SetIfAbsent], [Cache.SetIfChanged], [Cache.CompareAndSwap], [Cache.Update],
// [Cache.Append] and [Cache.GetAndDel] are atomic for their key. Those that change an entry keep
// its expiry and count as a read; a new entry gets [Options].TTL, or the TTL of
// [Cache.SetIfAbsentWithTTL] and [Cache.UpdateWithTTL]. A cache may drop an entry between any two
// calls, so do not keep in it what must not be lost: a lock may be lost before its time, and a
// counter may begin anew.
//
// [Cache.GetOrLoad] and [Cache.GetOrLoadBatch] load missing values. At most one load of a key
// is under way, and all callers that miss the key wait for it; a Set or Del meanwhile wins over
// its result. No wait is without end: a caller leaves when its context ends, and loads that
// would wait for each other in a circle get [ErrLoadCycle], if they pass on the context that
// they are given. With [Options].RefreshAhead, entries are loaded in the background before they
// expire; such a load has a deadline ([Options].RefreshTimeout), nobody waits for it, and it is
// not repeated at once if it fails. With [Options].StaleIfError, an expired value stands in for
// one that cannot be loaded.
//
// # Concurrency
//
// All methods may be called from any number of goroutines. Keys are divided over 512
// buckets. A write locks one of them. A lookup takes no lock: it copies the value, then
// checks that nobody has written to the bucket meanwhile, and starts over if somebody
// has. It takes the bucket's lock only if others keep writing to the bucket, if it misses
// where the key may be a large entry, if the key lies in the buffer that it appends to, or
// if the entry is in the cold part ([Options].Compressor).
//
// In terms of the Go memory model, a Set, Del or Reset synchronizes before a lookup
// that observes its effect. No call covers two keys at one instant: GetBatch,
// GetOrLoadBatch, SetBatch, All, Keys, Len, Reset, Resize, Sizing, Stats and UpdateStats go
// from key to key or from bucket to bucket, and may see a part of what others do meanwhile.
//
// No lock is held while a function of the user's runs: not that of View, Update,
// GetOrLoad, GetOrLoadBatch or [Options].OnRemove, not a codec, not a [Compressor], not the
// body of a loop. Each may take its time, panic, and call any method of the same cache. The
// package starts goroutines only for a load, while a snapshot is saved or loaded or a file
// opened, and one for a cache with a Compressor, until it is closed or collected.
//
// # Snapshots
//
// [Cache.SaveToFile] and [Cache.Save] write the cache to a file while others use it. The file at
// the path is always whole: the new one is written under another name, synced, and renamed.
// [Load] starts a service from it: it makes a cache with the program's Options, loads whatever is
// whole, and reports what was wrong. [LoadFromFile] makes a cache like the one that was saved, or
// fails. Keys, values, the rest of the time to live, order and frequencies come back, into a
// cache of any size. Times to live continue as in a file. Blocks have checksums, and a damaged
// file is [ErrCorrupt]. [Cache.WriteSnapshot] and [Cache.ReadSnapshot] do the same with streams. A
// snapshot may hold secrets: its mode is 0600.
//
// # Files
//
// With [Options].File the entries lie in a file that is mapped into memory. A cache that is
// opened on it again is warm, whatever ended the process: Close, a deploy, a panic, SIGKILL.
// What was being written at that moment is missing, and nothing wrong is there; [Stats] says
// what came back. After a crash of the machine, at any moment, the cache starts empty, or with
// all that it had at Close if it was not opened since: the disk may have pages of different
// ages. In /dev/shm the file takes memory and is never written to a disk. On a disk the kernel
// writes it back in its own time, which costs bandwidth, and after Close it survives a reboot.
// The file grows in steps of up to 64 MB and does not become shorter, but on Linux records and
// index together take no more than the bound: what the cache does not need becomes a hole. On
// top of it come 64 KB for the file and for each step. (Elsewhere, and below 64 MB, the index
// comes on top of the file.) The index is not in it. A file on a disk is read page by page, so a
// long value that the kernel has dropped from its page cache takes a read of the disk for each 4
// KB. A record takes 4 bytes more. Times to live go on while no process has the file: by a clock
// that nobody can set, and after a reboot by the wall clock, which cannot make an expired entry
// come back by being unset or set back (see [Options].File). OnRemove may be called before
// NewWithOptions returns, if the bound is smaller than before. A closed cache can no longer change
// its file: a Set or Del after Close leaves in it what was there.
//
// The file may hold secrets: it must belong to the user, and its mode is 0600. If another
// program truncates it, the process crashes with SIGBUS. It crashes too if the disk has no room
// for a page that is written. So each page gets its room before it is used, and holes in a
// sparse copy get theirs when the file is opened or they are used; on btrfs and XFS pages are also
// written in place. That cannot be had on other copy-on-write file systems (ZFS, APFS), nor
// while a btrfs snapshot or a reflink shares the pages: there, keep as much of the disk free as
// the file is long.
//
// # Memory
//
// MaxBytes bounds all off-heap memory, records and index together; 256 KB is the least. An
// entry takes its bytes, a header of 3 bytes (7 from a key of 64 bytes or a value of
// 64 KB on; 4 more with a time to live), and its part of the index. Address space comes
// in maps of up to 64 MB, and resident memory as entries come. The Go heap holds up to
// 480 KB for each cache, 40 KB for one of 1 MB, and small tables of the chunks that records lie in.
//
// Records that were replaced, deleted or invalidated, or have expired, make room for new ones
// before live entries are evicted, where a sixteenth of the bytes or more is dead.
//
// [Cache.Reset] keeps the memory for new entries, [Cache.Resize] gives back what is above
// the new bound, and [Cache.Close] gives back all physical memory at once. The address
// space goes back when the Cache is collected. A Cache that is dropped without Close
// gives back both then.
//
// Where the operating system refuses memory, or the file system of [Options].File is full,
// the cache works as one of the size that it got ([Stats].EffectiveMaxBytes), and asks for
// more now and then.
//
// The Go runtime does not know this memory: GOMEMLIMIT and GOGC do not count it, a
// container's limit does. Set GOMEMLIMIT to what the process may have, less MaxBytes and a
// tenth for what else is outside of the heap.
// On Linux, memory that entries have filled comes to lie on large pages ([HugePages]).
//
// On platforms other than Linux, macOS and the BSDs, under the race detector and the
// sanitizers, and with the build tag ringcache_heap, the same memory is a few large
// slices of the Go heap, which the collector does not look into. The build tag purego
// leaves out the prefetch instruction, which is the only assembly.
//
// # Errors
//
// The methods that store return [ErrTooLarge], [ErrNoMemory] or [ErrClosed], and those with a TTL
// also [ErrTTLTooShort], wrapped with the sizes; test with [errors.Is]. Each means that
// the key is absent now, an older value included, so a caller that can do without the
// entry may ignore it. After Close lookups miss; a file keeps the values that it has then. A
// nil *Cache panics as any nil pointer does: a program can recover.
//
// # Security
//
// A random secret of the cache is mixed into every hash, so nobody outside can
// choose keys that meet in one bucket. The hash below it is XXH64 without a seed:
// keys made to collide in all of its 64 bits still do. They are never taken for
// one another, push out only each other and a few neighbours, and a search among
// them is bounded: 32 cache lines of the index, and the 224 records that these can
// lead to. Bytes of entries that were deleted or dropped stay in memory until they
// are overwritten.
//
// # Caveats
//
// A Set of a key that is there overwrites the value where it lies if that has room, and the
// entry keeps its age and standing. New entries that nobody reads are the
// first to go; how soon is learned from reads that came too late. If keys are read
// once, more than 0.6 of the cache after they were set, [PolicyFIFO] is the better choice.
//
// Large values (above 1/4096 of MaxBytes, in a cache below 32 MB above 8 to 16 KB, or less where
// most of them are large) are stored in a separate part of the cache. Their Sets take turns, and
// their lookups take a lock. A Cache must not be copied, and its zero value is of no use.
package ringcache
