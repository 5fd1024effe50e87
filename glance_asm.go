//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import "golang.org/x/sys/cpu"

// hasAVX tells that copies may go by 32 bytes, hasAVX2 that four slots may be looked at at once.
var hasAVX, hasAVX2 = cpu.X86.HasAVX, cpu.X86.HasAVX2

// ringShift is log2 of the size of a ring.
const ringShift = 7

// glance is glanceHashed of a key of at most mostHashed bytes, whose hash h it computes.
//
//go:noescape
func glance(c *Cache, dst, k []byte, lane uint) (h uint64, n int)

// glanceHashed looks up k, with hash h, as getLocked does: it asks for the home group, takes that
// lane, which must be one of commons.known, looks at the home group and the next one, copies the value behind dst, counts, and
// leaves the lane. It returns the length of the value, or glanceMiss, or glanceUnsure, or
// glanceUnsure-n if dst lacks room for a value of n bytes.
//
// It never waits and calls nothing, so the goroutine cannot be stopped in between, and
// the collector not come to an end: a hint that has been read stays what it is.
//
//go:noescape
func glanceHashed(c *Cache, dst, k []byte, lane uint, h uint64) int

// read is a glance under the lock, which has been taken to read at least: it counts no
// lookup.
//
//go:noescape
func read(c *Cache, dst, k []byte, h uint64) int

// quest is a key of a batch that getKeys looks for; batch_amd64.s says what is in it.
type quest [6]uint64

// getKeys is a glance of many keys, of which it takes the lanes first, then looks for all
// slots and asks for all records, and then copies values, each behind that of the key
// before. No atomic instruction stands between these, which would wait for what was
// asked for, and nothing is looked for twice. It goes along the whole path of a key.
//
// The home groups have been asked for. getKeys enters the lanes of the first keys, up to
// one whose lane is closed or taken by others, notes the lengths of values, or
// glanceMiss, and stops where a glance would be unsure, or once it has copied batchBytes:
// n keys have been looked up, and dst goes up to end. Hashes, lens and quests are the first
// of as many as there are keys. quests is on a stack: the collector does not know what is
// written there, and nobody reads it after the call.
//
// It waits for nothing while it has lanes, not even for another lane, so nobody can wait
// for it in a circle.
//
//go:noescape
func getKeys(c *Cache, dst []byte, keys [][]byte, hashes *uint64, lens *int, lane uint, quests *quest) (n, entered, end int)

// askKeys is ask of one key after the other, up to the first that is longer than
// mostHashed, and returns how many there are before that. Hashes is the first of as many as
// there are keys.
//
//go:noescape
func askKeys(c *Cache, keys [][]byte, hashes *uint64) int

// noteRecords notes the lines of the records that n hashes, n > 0, are likely to lead to, by
// that lane of each bucket: none if there is no record, linesUnknown if the lane cannot be
// taken. Then it asks for all that it has noted, and returns of how many hashes it does not
// know. records is on a stack: it is written without the collector's knowledge.
//
//go:noescape
func noteRecords(c *Cache, hashes *uint64, records *[batchSize]lines, n int, lane uint) (unknown int)

// askShort is askPath for a key of at most mostHashed bytes.
//
//go:noescape
func askShort(c *Cache, k []byte) uint64

// replace writes v over the value of k, with hash h, or puts that aside, as tryLocked does,
// if the older value is in the home group, and reports whether it has. Lines to ask
// for are those of the record of a Set that was put aside, else none. The bucket is
// locked to write, and nothing is aside. It is put aside in place p, if
// that is not nil and nobody else has claimed it.
//
//go:noescape
func replace(b *bucket, k, v []byte, h uint64, p *aside) (ask lines, ok bool)

// takeUp makes the Set that was put aside, if it has the length of the older value and that is in the home group, and
// reports whether it has.
//
//go:noescape
func takeUp(b *bucket, a *aside) bool

// foresee returns lines to ask for: those of the record of the Set that was put off at p, if one was, or none. A
// bucket that is not closed is locked, any one, so that the memory it looks at is there; what it looks at may change
// meanwhile.
//
//go:noescape
func foresee(c *Cache, p *aside) (ask lines)

// isNew reports whether there is no slot, alive or stale, that a key of hash h may have:
// what is set under it is new, and has no ghost. It may say false of one that is.
//
//go:noescape
func isNew(b *bucket, h uint64) bool

// space is index.space.
func space(b *bucket, h uint64) (at uint32, i int) {
	if hasAVX2 {
		return spaceAVX2(b, h)
	}
	return b.index.space(h, b.windows())
}

//go:noescape
func spaceAVX2(b *bucket, h uint64) (at uint32, i int)
