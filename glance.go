package ringcache

// A glance is the common case in as few instructions as can be. While one call waits for
// a line of memory, the processor begins the next ones, as many as fit into its window
// of 300 to 500 instructions: so each that is saved makes all calls faster that wait for
// memory. On amd64 glances are assembly (glance_amd64.s, of steps from glance_amd64.h), with
// half of the instructions that the compiler makes of direct.go. Everywhere else, under the
// race detector, and with the tags purego and ringcache_heap, what there is in Go for every
// case is all there is, and the functions of glance_other.go leave everything to it.
//
// A glance reads beside whoever writes to the bucket, and looks afterwards whether somebody has (bucketLock.seq). Until
// it knows, it takes nothing for granted: what it reads may be of two times, and memory may be another's by now. It stays within
// chunks and tables that are there as long as a lane is busy, and changes nothing but the frequency in a slot, by comparison with what it has
// read.
//
// What a glance cannot do, it leaves undone, and says so: a lane that is busy, somebody who writes, a Set that was put aside,
// a key beyond the second group of its probe path, a record that has a long header or
// an expiry or crosses chunks, another key with the same tag and hash in the slot, a miss
// where there may be a large record, a dst without room. Nothing has been changed then.
const (
	glanceMiss   = -1 // k is not there
	glanceUnsure = -2 // nothing has been done
)

// linesUnknown stands for a number of lines that noteRecords has not found out.
const linesUnknown = 1 << 8

// mostHashed is the longest key that a glance computes the hash of. Longer ones are cut
// into stripes by XXH64, which xxhash does; so it does with all keys where no glance is.
const mostHashed = 31
