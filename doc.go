// Package ringcache is a cache of byte slices that the garbage collector does
// not see. Keys, values and the index over them lie outside of the Go heap, in
// memory with a bound that the program sets. It is meant for programs that
// hold so many small entries that collections take long, and that must not
// outgrow their memory limit.
//
//	cache := ringcache.New(256 << 20) // bytes at the most, index included
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
// An entry stays until its key is set again or deleted, the cache is reset, or
// room is needed: a cache may drop any entry at any time. By default what is
// read stays longer, and [Options] has a rule that goes by age alone; the exact
// order is not part of the contract. A hit is always exactly the bytes of one
// Set of that key, since keys are compared in full. After a Set that returned
// nil, the next Get of the key finds the value unless other Sets have pushed it
// out since, or it has expired.
//
// # Expiry
//
// [Cache.SetWithTTL] and [Options].TTL give entries a time to live. An expired
// entry is never returned, by no method: time is counted in tenths of a second
// by the monotonic clock, so an entry may go a tenth early, never late, and
// changes of the wall clock do nothing. Its space goes to later Sets before that
// of live entries, a little with each Set, or when [Cache.DeleteExpired] is
// called. An expiry takes 4 bytes, of entries that have one.
//
// # Atomic writes
//
// [Cache.SetIfAbsent], [Cache.SetIfChanged], [Cache.CompareAndSwap],
// [Cache.Update], [Cache.Append] and [Cache.GetAndDel] are atomic for their key.
// [Cache.GetOrLoad] has at most one load of a key under way, and a Set or Del
// meanwhile wins over what is loaded. A cache may drop an entry between any two
// calls, so none of this makes it a place for what must not be lost.
//
// # Concurrency
//
// All methods may be called from any number of goroutines. Keys are divided
// over 512 buckets, each with a lock of its own, that lookups pass side by side;
// on amd64 most wait for no writer. A Set, Del or
// Reset synchronizes before a lookup that observes its effect, in the terms of
// the Go memory model. No call covers two keys at one instant: GetBatch,
// SetBatch, All, Keys, Len, Reset, Resize and UpdateStats go from bucket to
// bucket, and what others do meanwhile may be seen in part. The package starts no
// goroutines, but for a load that GetOrLoad was asked for. [Options].OnEvict is
// called after all locks are released, by the goroutine whose call made the
// entry leave; functions given to Update and GetOrLoad run without a lock too,
// and may use the cache.
//
// # Loading
//
// [Cache.GetOrLoad] has a missing value loaded: once, however many callers ask
// for it, each of which waits as long as its context lets it. A write of the key
// that comes while it is loaded counts more than what the load brings. A load may
// say how long its result is good for, and have it remembered that there is no
// value. [Options].RefreshAhead loads anew what is about to expire while its
// callers still have it.
//
// # Memory
//
// MaxBytes bounds all off-heap memory, records and index together; 32 MB is the
// least. An entry takes its bytes, a header of 3 bytes (7 from a key of 64 bytes
// or a value of 64 KB on; 4 bytes more with a time to live) and its part of the
// index, which grows with the number of entries. A new cache takes next to none
// of it: address space comes in maps of up to 64 MB, and resident memory as
// entries come. The Go heap holds about 430 KB for each cache, 530 KB that let
// cores look up side by side, of which only what is used becomes resident, and
// small tables of the chunks that records lie in.
//
// [Cache.Reset] keeps the memory for new entries. [Cache.Resize] sets another
// bound, and gives back what is above it. [Cache.Close] gives all of it back to
// the operating system, and so does the garbage collector some time after the
// last reference to a Cache is gone.
//
// The Go runtime does not know this memory: GOMEMLIMIT and GOGC do not count
// it, a container's limit does. Set GOMEMLIMIT to what the process may have less
// MaxBytes. [Options].HugePages trades a slower start for faster reads in large
// caches. Processes that this one starts do not inherit the memory.
//
// On platforms other than Linux, macOS and the BSDs, under the race detector and
// the sanitizers, and with the build tag ringcache_heap, the same memory is a
// few large slices of the Go heap, which the collector does not look into.
//
// # Keys and values
//
// Any bytes will do, none too: nil and empty are the same key, and an empty
// value is a value. A key has at most 65,535 bytes, a value at most a sixteenth
// of MaxBytes. Set copies what it is given, Get appends a copy to a slice of the
// caller's, and loops over [Cache.All] see copies, so nobody holds memory of the
// cache, except for the function that is given to [Cache.View] while it runs. [Typed] is a view with keys and
// values of a program's own types.
//
// # Errors
//
// Set and SetBatch return [ErrTooLarge], [ErrNoMemory] or [ErrClosed], wrapped with the
// sizes; test with [errors.Is]. Each means that the key is absent now, an older
// value included, so a caller that can do without the entry may ignore it. After
// Close lookups miss. [NewWithOptions] returns [ErrInvalidOptions] where [New]
// panics, and Resize does for a bound that the cache cannot have.
// [Cache.GetOrLoad] returns what its load returns, its context's error,
// [ErrAbsent] or [ErrLoadExited], and panics with a [*LoadPanic] where the load
// does. A [Typed] view adds [ErrEncode] and [ErrDecode].
//
// # Security
//
// A random secret of the process is mixed into every hash, so that nobody
// outside can choose keys that meet in one bucket. The hash below it is XXH64
// without a seed: keys made to collide in all of its 64 bits still do. They are
// never taken for one another, push out only each other and a few neighbours,
// and a search among them is bounded: 16 cache lines of the index, and the 112
// records that these can lead to. Bytes of entries that were deleted or dropped
// stay in memory until they are overwritten.
//
// # Caveats
//
// A Set of a value of the same length as before is made in place, and the entry
// keeps its age and standing. Large values (above 1/4096 of MaxBytes, or less
// where most of them are large) live in a part of the cache of their own, and
// their Sets take turns. A function given to View must not call methods of the same Cache. A
// Cache must not be copied, and its zero value is of no use.
package ringcache
