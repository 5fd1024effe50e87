package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Pass is a walk over a cache. It saves the cells with an entry for which the function returns
// true.
type Pass func(rank, freq int) bool

// everything is the last pass, which saves what the earlier ones have not.
func everything(int, int) bool { return true }

// The passes of a snapshot: a single one, or several for an order.
var (
	AtOnce       = []Pass{everything}
	HottestFirst = []Pass{
		func(_, freq int) bool { return freq > 1 },
		func(_, freq int) bool { return freq > 0 },
		func(rank, _ int) bool { return rank >= SmallRanks },
		everything,
	}
	ColdestFirst = []Pass{
		func(rank, _ int) bool { return rank < SmallRanks },
		func(rank, _ int) bool { return rank < Ranks/2 },
		func(rank, _ int) bool { return rank < Ranks*3/4 },
		everything,
	}
)

// Saver saves a cache once. The cache consists of parts, and an entry stays in its part. A step
// copies some entries of a part, from a cursor on, to the blocks of a Worker.
type Saver struct {
	Context  context.Context
	To       io.WriterAt // or Stream
	Stream   io.Writer   // for one worker
	Header   Header
	Passes   []Pass
	Names    map[string]uint64 // generations of namespaces
	Parts    int
	Size     func(part int) int // approximate number of entries of a part
	Partial  bool               // the end of the context is not an error once something is saved
	Progress func(done, total int64)

	Step func(w *Worker) Step // returns the function that makes a worker's steps
	End  uint64               // the last cursor

	Written atomic.Int64 // bytes

	maxBlock        int
	cells           []Cells // of each part
	done            atomic.Int64
	blocks, entries atomic.Uint64

	stopped atomic.Bool // there is an error, or the context has ended
	mu      sync.Mutex
	err     error
}

// Step saves the cells that pass p wants and no earlier pass has saved, from cursor at of a part
// on, and returns the next cursor.
type Step func(part int, at uint64, p Pass, saved *Cells) (uint64, error)

// Worker holds the blocks that a goroutine fills, one for each rank.
type Worker struct {
	Blocks [Ranks]Block
	Bytes  int // of records that the step has copied

	s      *Saver
	packer Packer
	step   Step
	lead   bool // runs in the caller's goroutine
}

// StepBytes is the maximum number of bytes of records that a step copies. The prefixes of the
// entries come on top.
const StepBytes = 64 << 10

// errCut ends a worker early, for example because the context of a partial snapshot has ended. It
// is not an error.
var errCut = errors.New("the context has ended")

// Run saves everything, with the given number of workers. The caller's goroutine is one of them.
func (s *Saver) Run(workers int) error {
	s.maxBlock = MaxBlock
	if workers > 4 {
		s.maxBlock /= 4 // each of them has a block for each rank
	}
	s.cells = make([]Cells, s.Parts)
	if err := s.put(s.Header.Append(nil)); err != nil {
		return err
	}
	all := make([]*Worker, workers)
	for i := range all {
		all[i] = &Worker{s: s, lead: i == 0}
		for rank := range all[i].Blocks {
			all[i].Blocks[rank].Reset()
		}
		all[i].step = s.Step(all[i])
	}
	if err := s.writeNames(all[0]); err != nil {
		return err
	}
	for _, p := range s.Passes {
		s.pass(all, p)
	}
	cut := s.err == errCut
	switch {
	case cut && s.entries.Load() == 0:
		return s.Context.Err()
	case s.err != nil && !cut:
		return s.err
	}
	end := End{Blocks: s.blocks.Load(), Entries: s.entries.Load(), Partial: cut}
	if err := s.put(end.Append(nil, &s.Header)); err != nil {
		return err
	}
	if s.Progress != nil && !cut {
		s.Progress(int64(s.Header.Bytes), int64(s.Header.Bytes))
	}
	return nil
}

// group is the number of parts in which a worker takes steps in turn, so that others that wait for
// the lock of a part get it in between.
const group = 8

// pass runs a pass over all parts by all workers. If Progress panics, the other workers end before
// the panic continues.
func (s *Saver) pass(all []*Worker, p Pass) {
	var next atomic.Int64
	walk := func(w *Worker) {
		err := s.ended()
		for err == nil {
			i := int(next.Add(group)) - group
			if i >= s.Parts {
				break
			}
			err = w.walk(i, min(group, s.Parts-i), p)
		}
		s.note(err)
		if err == nil || err == errCut && s.Partial {
			s.note(w.flush())
		}
	}
	var others sync.WaitGroup
	returned := false
	defer func() {
		if !returned {
			s.stopped.Store(true)
		}
		others.Wait()
	}()
	for _, w := range all[1:] {
		others.Add(1)
		go func() {
			defer others.Done()
			walk(w)
		}()
	}
	walk(all[0])
	returned = true
}

// walk makes pass p over the n parts from first on.
func (w *Worker) walk(first, n int, p Pass) error {
	var at [group]uint64
	for more := true; more; {
		more = false
		for i := range n {
			if at[i] == w.s.End {
				continue
			}
			if err := w.s.ended(); err != nil {
				return err
			}
			if err := w.makeRoom(); err != nil {
				return err
			}
			if at[i] == 0 && len(w.s.Passes) > 1 {
				w.s.cells[first+i].Init(w.s.Size(first + i))
			}
			w.Bytes, more = 0, true
			var err error
			if at[i], err = w.step(first+i, at[i], p, &w.s.cells[first+i]); err != nil {
				return err
			}
			w.report()
		}
	}
	return nil
}

// report passes the progress of a step to Progress.
func (w *Worker) report() {
	done, total := w.s.done.Add(int64(w.Bytes)), int64(w.s.Header.Bytes)
	if w.lead && w.Bytes > 0 && done < total && w.s.Progress != nil {
		w.s.Progress(done, total)
	}
}

// makeRoom makes room for a step in each block, and writes the blocks that have none left.
func (w *Worker) makeRoom() error {
	const room = StepBytes + StepBytes/4 // includes the prefixes of the entries
	for rank := range w.Blocks {
		if err := w.Reserve(rank, room); err != nil {
			return err
		}
	}
	return nil
}

// Reserve makes room for n bytes in the block of a rank, and writes the block first if it has less
// left.
func (w *Worker) Reserve(rank, n int) error {
	b := &w.Blocks[rank]
	if len(b.Bytes)+n > w.s.maxBlock {
		if err := w.Write(b, rank); err != nil {
			return err
		}
	}
	if cap(b.Bytes)-len(b.Bytes) < n {
		// If it grew by a quarter at a time, as with append, a block would be copied ten times.
		b.Bytes = slices.Grow(b.Bytes, max(n, min(7*len(b.Bytes), w.s.maxBlock-len(b.Bytes))))
	}
	return nil
}

// flush writes the contents of all blocks.
func (w *Worker) flush() error {
	for rank := range w.Blocks {
		if err := w.Write(&w.Blocks[rank], rank); err != nil {
			return err
		}
	}
	return nil
}

// Write writes a block, and empties it.
func (w *Worker) Write(b *Block, rank int) error { return w.writeKind(b, kindEntries, rank) }

// writeKind is Write for a block of a kind.
func (w *Worker) writeKind(b *Block, kind uint8, rank int) error {
	if b.Entries == 0 {
		return nil
	}
	s := w.s
	id := s.blocks.Add(1) - 1
	if id >= math.MaxUint32 {
		return fmt.Errorf("%d blocks are too many, at most %d are allowed", id, uint32(math.MaxUint32))
	}
	s.entries.Add(uint64(b.Entries)) // names too
	err := s.put(b.finish(kind, rank, uint32(id), s.Header.Salt, &w.packer))
	b.Reset()
	return err
}

// put writes b after the bytes written before. Several workers may call it at once.
func (s *Saver) put(b []byte) error {
	if s.To != nil {
		n := int64(len(b))
		_, err := s.To.WriteAt(b, s.Written.Add(n)-n)
		return err
	}
	n, err := s.Stream.Write(b)
	s.Written.Add(int64(n))
	if n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	return err
}

// note records the first error, which takes precedence over errCut, and stops all workers.
func (s *Saver) note(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || s.err == errCut {
		s.err = err
	}
	s.stopped.Store(true)
}

// ended returns the reason why a worker must stop, or nil.
func (s *Saver) ended() error {
	if err := s.Context.Err(); err != nil && !s.Partial {
		return err
	} else if err != nil || s.stopped.Load() {
		return errCut
	}
	return nil
}
