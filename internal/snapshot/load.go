package snapshot

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Load passes the blocks that Scan has found to functions returned by restore, one for each of up
// to workers goroutines, which include the caller's and end before Load returns. Blocks of a lane
// are passed to one of them, in their order. Blocks of more than most bytes are left out: they hold
// a record that is too long. If the last quarters of the rings fill room bytes, the unread records
// of all others are left out. No function may panic if there are several workers.
//
// After Scan with salvage, damaged blocks are also left out, and counted. Otherwise the error is
// that of a damaged block; it may also be that of a function of restore.
func (c *Contents) Load(
	workers int, most, room uint64, restore func() func(*Ref, []byte) error,
) error {
	c.choose(room)
	l := loading{Contents: c, most: most}
	l.load(restore(), func(b *Ref) bool { return b.Kind != kindRecords }) // they come first
	workers = min(workers, len(c.Blocks))
	var others sync.WaitGroup
	work := func(i int) {
		l.load(restore(), func(b *Ref) bool {
			return b.Kind == kindRecords && int(b.Lane)%workers == i
		})
	}
	for i := 1; i < workers; i++ {
		others.Add(1)
		go func() {
			defer others.Done()
			work(i)
		}()
	}
	work(0)
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

// choose selects the blocks whose unread records are left out.
func (c *Contents) choose(room uint64) {
	behind := uint64(0)
	for q := uint8(Quarters); q > 0; q-- {
		skip := behind >= room
		for i := range c.Blocks {
			if b := &c.Blocks[i]; b.Quarter == q {
				b.Skip = skip
				behind += b.Size + perRecord*uint64(b.Records)
			}
		}
	}
}
