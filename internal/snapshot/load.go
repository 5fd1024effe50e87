package snapshot

import (
	"errors"
	"slices"
	"sync"
)

// Load calls what restore returns with the blocks of a snapshot, in up to so many
// goroutines, which end before it returns, the caller's among them. Those of low ranks
// come first: so in each ring the newest entries come last, and push out others should
// there be no room for all. Blocks of more than most bytes are left out: they hold an
// entry that is too long. Where more is there than fits into room bytes, Ref.Skip tells
// which entries to leave out.
//
// After Scan with salvage, damaged blocks are left out too, and counted as such. The
// error is that of the first other block that is damaged, or of restore.
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
			c.Damaged++
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
			if b.Size <= most {
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
			_ = take(errStopped, false) // a panic goes on: the others end before
			others.Wait()
		}
	}()
	work()
	returned = true
	others.Wait()
	return first
}

// errStopped ends the workers when one of them panics.
var errStopped = errors.New("loading was stopped")

// perEntry is about what an entry takes in an index.
const perEntry = 14

// choose has unread entries left out of the lowest ranks, until the rest takes but a
// little more than room bytes.
func (c *Contents) choose(room uint64) {
	size := uint64(0)
	for i := range c.Blocks {
		size += c.Blocks[i].Size + perEntry*uint64(c.Blocks[i].Entries)
	}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		if size <= room+room/16 {
			return
		}
		b.Skip = true
		if b.Size > 0 {
			skipped := float64(b.Unread) / float64(b.Size)
			size -= min(size, b.Unread+uint64(skipped*perEntry*float64(b.Entries)))
		}
	}
}
