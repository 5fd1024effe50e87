package snapshot

import (
	"errors"
	"math"
	"slices"
	"sync"
)

// Load passes the blocks of a snapshot to functions returned by restore, one for each of up to
// workers goroutines, which include the caller's and end before Load returns. Blocks of low ranks
// come first, so that in each ring the newest entries come last, and displace others if there is
// not room for all. Blocks of more than most bytes are left out: they hold an entry that is too
// long. If the blocks hold more than fits into room bytes, Ref.Each leaves out unread entries of
// low ranks.
//
// After Scan with salvage, damaged blocks are also left out, and counted. Otherwise the error is
// that of the first damaged block; it may also be that of a function of restore.
func (c *Contents) Load(
	workers int, most, room uint64, restore func() func(*Ref, []byte) error,
) error {
	slices.SortStableFunc(c.Blocks, func(a, b Ref) int { return int(a.Rank) - int(b.Rank) })
	c.choose(room)
	var mu sync.Mutex
	var first error
	next := 0
	take := func(err error, damaged bool) *Ref {
		mu.Lock()
		defer mu.Unlock()
		if damaged && c.salvage {
			c.passOver(err)
		} else if first == nil {
			first = err
		}
		if first != nil || next == len(c.Blocks) {
			return nil
		}
		next++
		return &c.Blocks[next-1]
	}
	work := func() {
		var buf buffers
		fn := restore()
		for b := take(nil, false); b != nil; {
			var err error
			damaged := false
			if b.Size <= most && !b.IsNames() {
				var body []byte
				if body, err = c.body(b, &buf); err != nil {
					damaged = true
				} else {
					err = fn(b, body)
				}
			}
			b = take(err, damaged || errors.Is(err, ErrCorrupt))
		}
	}
	var others sync.WaitGroup
	for range min(workers, len(c.Blocks)) - 1 {
		others.Add(1)
		go func() {
			defer others.Done()
			work()
		}()
	}
	returned := false
	defer func() {
		if !returned {
			_ = take(errStopped, false) // the other workers end before the panic continues
			others.Wait()
		}
	}()
	work()
	returned = true
	others.Wait()
	return first
}

// errStopped ends the other workers if the caller's panics.
var errStopped = errors.New("loading was stopped")

// perEntry is the approximate size of an entry in an index.
const perEntry = 14

// choose selects unread entries to leave out, until the rest takes a quarter more than room bytes;
// the margin is needed because buckets do not get equal shares. It leaves out the same fraction of
// the small ring and of main, from the lowest ranks of each. A block has entries of few buckets, so
// if only a fraction of a rank is left out, each block of the rank leaves out that fraction.
func (c *Contents) choose(room uint64) {
	var unread, all, skip [Ranks]float64
	total := 0.0
	for i := range c.Blocks {
		b := &c.Blocks[i]
		size := float64(b.Size) + perEntry*float64(b.Entries)
		all[b.Rank] += size
		unread[b.Rank] += size * float64(b.Unread) / max(float64(b.Size), 1)
		total += size
	}
	excess := max(0, 1-float64(room+room/4)/max(total, 1))
	over := 0.0
	for rank := range skip {
		if rank == 0 || rank == SmallRanks {
			over = 0
			for of := rank; of < Ranks && (of < SmallRanks) == (rank < SmallRanks); of++ {
				over += excess * all[of]
			}
		}
		skip[rank] = min(1, over/max(unread[rank], 1))
		over -= skip[rank] * unread[rank]
	}
	for i := range c.Blocks {
		c.Blocks[i].Skip = skip[c.Blocks[i].Rank]
	}
}

// thinning leaves out a fraction of the bytes of a block, evenly. Its rounding differs from block
// to block, because a block may have only a single entry.
type thinning struct{ part, rounding, seen, left float64 }

// thinning returns the thinning of a block's unread entries.
func (b *Ref) thinning() thinning {
	const golden = 0.6180339887498949 // the fractions of its multiples are spread evenly
	_, fraction := math.Modf(golden * float64(b.ID+1))
	return thinning{part: b.Skip, rounding: fraction}
}

// leavesOut reports whether the next entry, of n bytes, is to be left out.
func (t *thinning) leavesOut(n int) bool {
	t.seen += float64(n)
	if t.left+t.rounding*float64(n) >= t.part*t.seen {
		return false
	}
	t.left += float64(n)
	return true
}
