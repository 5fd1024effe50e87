package snapshot

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Load passes the blocks that Scan has found to functions returned by restore, one for each of up
// to workers goroutines, which include the caller's and end before Load returns. Blocks of a lane
// are passed to one of them, in their order. Blocks of more than most bytes are left out: they hold
// a record that is too long. If all blocks have more than room bytes, Ref.Each leaves out the
// oldest of the unread records.
//
// After Scan with salvage, damaged blocks are also left out, and counted. Otherwise the error is
// that of a damaged block; it may also be that of a function of restore.
func (c *Contents) Load(
	workers int, most, room uint64, restore func() func(*Ref, []byte) error,
) error {
	c.choose(room)
	l := loading{Contents: c, most: most}
	l.load(restore(), (*Ref).IsSizes)
	l.load(restore(), (*Ref).IsNames)
	workers = min(workers, len(c.Blocks))
	var others sync.WaitGroup
	work := func(i int) {
		l.load(restore(), func(b *Ref) bool {
			return b.Kind == kindRecords && int(b.Lane)%workers == i
		})
	}
	returned := false
	defer func() {
		if !returned {
			l.stopped.Store(true) // the other workers end before the panic continues
		}
		others.Wait()
	}()
	for i := 1; i < workers; i++ {
		others.Add(1)
		go func() {
			defer others.Done()
			work(i)
		}()
	}
	if workers > 0 {
		work(0)
	}
	returned = true
	others.Wait()
	return l.err
}

// loading is the state that the workers of a Load share.
type loading struct {
	*Contents
	most    uint64
	stopped atomic.Bool
	mu      sync.Mutex
	err     error
}

// load passes the blocks that is selects to fn.
func (l *loading) load(fn func(*Ref, []byte) error, is func(*Ref) bool) {
	var buf Buffers
	for i := range l.Blocks {
		b := &l.Blocks[i]
		if !is(b) || b.Size > l.most {
			continue
		}
		if l.stopped.Load() {
			return
		}
		body, err := l.Body(b, &buf)
		damaged := err != nil
		if err == nil {
			err = fn(b, body)
		}
		if err != nil {
			l.note(err, damaged || errors.Is(err, ErrCorrupt))
		}
	}
}

// note notes the error of a block.
func (l *loading) note(err error, damaged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if damaged && l.salvage {
		l.passOver(err)
		return
	}
	if l.err == nil {
		l.err = err
	}
	l.stopped.Store(true)
}

// perRecord is the approximate size of a record's slot in an index.
const perRecord = 14

// choose selects the unread records that are left out: those of the first quarters of the rings,
// until the rest takes a quarter more than room bytes. The margin is needed because buckets do not
// get equal shares. A run has the records of few buckets, so of a quarter that is left out in part,
// each run leaves out that part.
func (c *Contents) choose(room uint64) {
	var unread, skip [Quarters + 1]float64
	total := 0.0
	for i := range c.Blocks {
		b := &c.Blocks[i]
		size := float64(b.Size) + perRecord*float64(b.Records)
		unread[b.Quarter] += size * float64(b.Unread) / max(float64(b.Size), 1)
		total += size
	}
	excess := max(0, total-float64(room+room/4))
	for q := 1; q <= Quarters; q++ {
		skip[q] = min(1, excess/max(unread[q], 1))
		excess -= skip[q] * unread[q]
	}
	for i := range c.Blocks {
		c.Blocks[i].Skip = skip[c.Blocks[i].Quarter]
	}
}
