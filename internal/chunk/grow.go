package chunk

import "fmt"

// How a pool gets memory from a system that may refuse it.
//
// A large area that is refused is asked for in halves. If no area is granted at all, the bound in
// force falls to the memory that the pool has, so that rings evict instead of asking for more.
// While it is below the bound that was set, the pool asks again now and then, after so many bytes
// stored, because a refusal may be slow.

const (
	// No area is smaller, except in tiny caches: in a file, each area also takes 64 KB for its
	// directory.
	leastArea = 256 << 10

	// An area that is asked for after a refusal is at least 1/growShare of what is in
	// use, so that there are never many areas. 1/retryShare of that is stored before
	// the next try, and twice as much after each further refusal, up to all of it.
	growShare  = 16
	retryShare = 8
	retryTwice = 3

	// As long as 1/leftShare of the memory in use is left, and leftChunks chunks, the pool does not
	// ask for more. Buckets leave up to half of that unused.
	leftShare  = 8
	leftChunks = 8
)

// source is where areas of one kind come from: those for rings, or for index pages.
type source struct {
	next    int   // bytes of the next area
	refused error // of the last attempt; nil if that was successful
	fails   int   // attempts refused in a row
	waited  int   // bytes stored since the last one
}

// Bound returns the bound in force: the one that was set, or less as long as the
// system refuses memory.
func (p *Pool) Bound() int { return int(p.bound.Load()) }

// Limited reports whether the bound in force is below the one that was set.
func (p *Pool) Limited() bool { return p.bound.Load() < p.most.Load() }

// Refusal returns the error with which the system refused memory for rings, or nil if it
// gave some since.
func (p *Pool) Refusal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forRings.refused
}

// OnBound has fn called whenever a refusal, or its end, changes the bound in force. The
// pool's lock is held then: fn must not need it.
func (p *Pool) OnBound(fn func()) { p.onBound = fn }

// Stored tells a limited pool that n bytes were stored. From time to time the pool then asks the
// system for more memory, at least until it has want bytes to hand out.
func (p *Pool) Stored(n, want int) {
	if !p.Limited() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forRings.waited += n
	p.forPages.waited += n
	used, ready := int(p.used.Load()), p.readyLocked()
	if ready < max(used/leftShare, leftChunks*p.chunkSize, want) && used+ready < int(p.most.Load()) {
		for p.freshBytes() > 0 {
			p.idle = append(p.idle, p.takeFreshLocked())
		}
		if p.mem.Rings != nil && len(p.notResident) > 0 {
			p.refillLocked()
		} else {
			_ = p.freshLocked() // limitLocked adapts the bound
		}
	}
	p.limitLocked()
}

// readyLocked returns the bytes of chunks that can be handed out without asking the
// system.
func (p *Pool) readyLocked() int {
	n := len(p.idle)*p.chunkSize + p.freshBytes()
	if p.mem.Rings == nil { // in a file they still need memory, which may be refused
		n += len(p.notResident) * p.chunkSize
	}
	return n
}

// freshBytes returns the number of bytes in the newest area that no ring has taken yet.
func (p *Pool) freshBytes() int { return len(p.fresh.mem) - p.fresh.taken }

// limitLocked limits the bound in force to the memory that the pool has. Files grow by whole
// chunks, and nothing is missing if less than one is.
func (p *Pool) limitLocked() {
	bound, has := p.most.Load(), p.used.Load()+int64(p.readyLocked())
	if has < bound && (p.mem.Rings == nil || bound-has >= int64(p.chunkSize)) {
		bound = has
	}
	if p.bound.Swap(bound) != bound && p.onBound != nil {
		p.onBound()
	}
}

// waitsLocked reports whether it is too early to ask again after a refusal.
func (p *Pool) waitsLocked(s *source) bool {
	used := int(p.used.Load())
	if p.mem.Rings != nil { // a refusal by a disk is slow
		used = max(used, min(leastArea, int(p.most.Load())/growShare))
	}
	return s.refused != nil && s.waited < used/retryShare<<min(s.fails-1, retryTwice)
}

// growLocked gets an area of at most most bytes from a source. If one is refused, it asks for half
// of it, down to the smallest area.
func (p *Pool) growLocked(
	s *source, most int, get func(n int) (*area, error),
) (*area, error) {
	used := int(p.used.Load())
	if p.waitsLocked(s) {
		return nil, s.refused
	}
	least := min(leastArea, most/growShare)
	if s.refused != nil {
		least = max(least, used/growShare)
		most = min(most, max(int(p.most.Load())-used, p.chunkSize))
	}
	least = p.wholeChunks(min(least, most))
	first := p.wholeChunks(max(min(s.next, most), least))
	for n := first; ; n = max(p.wholeChunks(n/2), least) {
		var a *area
		err := p.probeLocked(n)
		if err == nil {
			a, err = get(n)
		}
		if err == nil {
			*s = source{next: n}
			if n == first {
				s.next = 2 * n
			}
			return a, nil
		}
		if n <= least {
			*s = source{next: least, refused: err, fails: s.fails + 1}
			return nil, err
		}
	}
}

// probeLocked returns an error if the system has no memory for n bytes and for the headroom, of
// which a small cache leaves less: four times what the pool would then have.
func (p *Pool) probeLocked(n int) error {
	if p.mem.Headroom == 0 {
		return nil
	}
	leave := 4 * min(p.mem.Headroom/4, int(p.used.Load())+n) // in an int of 32 bits
	if err := p.mem.Probe(n + leave); err != nil {
		return fmt.Errorf("map %d bytes and leave %d free: %w: %w", n, leave, ErrNoMemory, err)
	}
	return nil
}

// wholeChunks returns n rounded up to chunks.
func (p *Pool) wholeChunks(n int) int {
	return (n + p.chunkSize - 1) / p.chunkSize * p.chunkSize
}
