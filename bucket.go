package ringcache

import (
	"sync"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/delay"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/singleflight"
)

// bucket is a share of the keys with its own lock: what is stored, and who may look at it.
//
// Writers exclude each other by mu. Readers do not take it: seq is a sequence lock
// (bucket_read.go), odd exactly while somebody who holds mu may change what readers look
// at, and never the same again (I13).
type bucket struct {
	mu  sync.Mutex
	seq atomic.Uint64
	Store
	calls singleflight.List[load] // loads that callers may join

	_ [32]byte // to whole cache lines on 64-bit platforms: buckets lie side by side
}

// lock takes the bucket to write. The load behind the store keeps later stores from passing
// it: nothing passes the load, and the load does not pass the store.
func (b *bucket) lock() {
	b.mu.Lock()
	b.seq.Store(b.seq.Load() + 1)
	b.seq.Load()
	delay.Point()
}

// tryLock is lock that reports false if somebody has the bucket. Only so may the lock of
// another bucket be held.
func (b *bucket) tryLock() bool {
	if !b.mu.TryLock() {
		return false
	}
	b.seq.Store(b.seq.Load() + 1)
	b.seq.Load()
	return true
}

// unlock gives back what lock took.
func (b *bucket) unlock() {
	delay.Point()
	b.seq.Store(b.seq.Load() + 1)
	b.mu.Unlock()
}

// close makes every later call miss.
func (b *bucket) close() {
	b.lock()
	defer b.unlock()
	b.calls.InvalidateAll()
	b.closeLocked()
}

// emptyLocked drops all entries, of which nobody is to be told, and makes loads under way
// out of date.
func (b *bucket) emptyLocked() {
	b.calls.InvalidateAll()
	b.resetLocked()
}

// unlockFor releases the bucket's lock, and hands the entries removed under it to the write.
func (b *bucket) unlockFor(w *write) {
	if b.removals != nil {
		b.takeRemovalsLocked(w)
	}
	b.unlock()
}

func (b *bucket) takeRemovalsLocked(w *write) {
	if w.removals == nil {
		w.removals = b.removals
	} else {
		w.removals.list = append(w.removals.list, b.removals.list...)
		w.removals.bytes += b.removals.bytes
	}
	b.removals = nil
}

// isAtLimit reports whether the bucket holds nearly all that it may.
func (b *bucket) isAtLimit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heldLocked()+b.shared.pool.ChunkSize()*2 > b.quota()
}

// isShort reports whether a small bucket has not the memory for a record of n
// bytes, whatever it evicts: the large buckets have all but a little.
func (b *bucket) isShort(n int) bool {
	s := b.shared
	spare := s.pool.Spare()
	if spare > n+3*s.pool.ChunkSize() {
		return false // as nearly always
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	lack := b.lackLocked(n)
	if b.index.Empty() && s.file != nil {
		lack++ // the page counts as a chunk, wherever it comes from
	}
	return lack > 0
}

// demand returns the bytes of new chunks and pages that a large bucket takes at
// most for a record of n bytes.
func (b *bucket) demand(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := b.shared.pool.ChunkSize()
	need := (n/size + 2) * size
	grow := min(b.quota()-b.heldLocked(), 2*need+policy.SetWork(n).Bytes)
	for i := range b.rings {
		// Whatever the quota, this record has to fit into either ring.
		grow = max(grow, need-b.rings[i].Held()*size)
	}
	return max(grow, 0) + b.shared.pool.PageSize()*(1+b.index.Pages()/growthPart)
}

// order enters the entries of generation g into the order of evictions.
func (b *bucket) order(u *generation.Usage, g uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := b.walkLocked(); ; {
		pos, ok := b.nextLocked(&w)
		if !ok {
			return
		}
		r := b.ring(w.ring)
		hd, ok := r.Header(pos)
		if !ok {
			return // the tail will see to it
		}
		if of, ok := b.generationAt(r, pos, hd); ok && of == g && !hd.Dead {
			u.Order.Push(b.keyHash(r, pos, hd))
		}
		w.pos = (pos + uint64(hd.Total())) & r.Mask
	}
}

// countNamespaces counts the entries of namespaces that are not counted yet, and drops those of
// forgotten ones.
func (b *bucket) countNamespaces() {
	b.lock()
	defer b.unlock()
	defer func() { b.removals = nil }() // OnRemove is not told of a file's entries
	type sum struct{ entries, bytes int }
	sums := map[*generation.Usage]sum{} // of those that there are now
	b.shared.generations.Each(func(u *generation.Usage) { sums[u] = sum{} })
	for w := b.walkLocked(); ; {
		pos, ok := b.nextLocked(&w)
		if !ok {
			break
		}
		r := b.ring(w.ring)
		hd, ok := r.Header(pos)
		if !ok {
			b.corruptions.Add(1)
			break
		}
		if g, ok := b.generationAt(r, pos, hd); ok && !hd.Dead {
			u, forgotten := b.shared.generations.Of(g)
			if forgotten {
				if b.shared.generations.Buried() == 0 { // else the walk finds them, and tells of them
					b.forgetAtLocked(w.ring, pos, hd)
				}
			} else if s, there := sums[u]; there {
				sums[u] = sum{s.entries + 1, s.bytes + hd.Total()}
			}
		}
		w.pos = (pos + uint64(hd.Total())) & r.Mask
	}
	for u, s := range sums {
		u.Counting(int(b.number), s.entries, s.bytes)
	}
}

// recover enters the records of the bucket's rings into its index, but if they are not timed,
// none that has an expiry.
func (b *bucket) recover(timed bool) {
	b.lock()
	defer b.unlock()
	rec := recovery{timed: timed}
	oldestFirst := []policy.Ring{policy.Cold, policy.Queue, policy.Main, policy.Small}
	for _, in := range oldestFirst {
		if in >= b.inUse() {
			continue
		}
		r := b.ring(in)
		for _, c := range r.Chunks() {
			b.shared.file.ReadAhead(c)
		}
		for pos := r.Tail; pos != r.Head(); {
			hd, ok := r.Header(pos)
			if !ok { // where the next record begins, nobody knows
				b.shared.recovered.discarded.Add(1)
				r.CutOff(pos)
				break
			}
			b.recoverRecordLocked(&rec, in, pos, hd)
			pos = (pos + uint64(hd.Total())) & r.Mask
		}
	}
	if b.cold.on {
		b.cold.begun = b.cold.held() > 0
	}
	n, bytes := b.liveLocked(), b.liveBytesLocked()
	b.shared.recovered.entries.Add(uint64(b.entriesLocked()))
	b.shared.recovered.bytes.Add(uint64(bytes))
	b.shared.arrive(arrival{n, bytes}, b.large)
	b.removals = nil // OnRemove is not told of what is removed here
	b.learnLocked()
}

// emptySmall moves what another policy has left in small to main.
func (b *bucket) emptySmall() {
	b.lock()
	defer b.unlock()
	small := &b.rings[policy.Small]
	for small.Size > 0 {
		hd, ok := small.Header(small.Tail)
		if !ok {
			small.Reset()
			break
		}
		p, there := b.index.Find(b.keyHash(small, small.Tail, hd), policy.Small, small.Tail)
		switch {
		case hd.Dead:
			small.ReleaseDead(hd)
		case !there:
			b.dropTailLocked(policy.Small, hd)
		default:
			work := b.setWork(hd.Total())
			b.promoteLocked(p, hd, &work)
		}
	}
	small.Trim()
	b.removals = nil // nor here
}

// fitStep does one step of making b as small as its quota says.
func (b *bucket) fitStep(f *fit, w *write) {
	b.lock()
	defer b.unlockFor(w)
	if b.closed {
		f.done = true
		return
	}
	quota := b.quota()
	if !f.begun {
		b.longest = b.shared.longest(b.shared.bound(), b.large)
		f.begun, f.pages = true, b.pagesWithin(quota)
		f.moves = quota
	}
	chunks := max(quota-f.pages*b.shared.pool.PageSize(), 0) >> b.shared.shift
	b.wanted = f.pages - b.index.Pages() // for limitLocked
	f.done = b.shedLocked(chunks, &f.moves)
	b.wanted = 0
	b.sweepLocked() // moved records use up positions (I5)
	if f.done && f.pages < b.index.Pages() {
		b.repackIndexLocked(f.pages)
	}
}
