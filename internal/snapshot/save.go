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

	"github.com/ringcache/ringcache/internal/record"
)

// Saver saves a cache once. The cache consists of parts, each of which a Walker goes through in
// passes: one for each quarter of its rings, so that the oldest records come first.
type Saver struct {
	Context  context.Context
	To       io.Writer
	Header   Header
	Parts    int
	Sizes    []byte // records and bytes of each part, approximately, as words
	Total    uint64 // bytes of all records
	Partial  bool   // the end of the context is not an error once something is saved
	Progress func(done, total int64)

	// Names adds the records of namespaces.
	Names func(w *Worker) error

	// Walker returns the function that makes a worker's steps.
	Walker func(w *Worker) Step

	Written int64 // bytes, guarded by mu until Run returns

	done            atomic.Int64
	blocks, records atomic.Uint64

	stopped atomic.Bool // there is an error, or the context has ended
	mu      sync.Mutex
	err     error
}

// Step adds some records of a part to the block of its Worker. It reports whether the part is done
// with the given quarter. Quarter 0 is for records that were read, wherever they are: a partial
// snapshot begins with it.
type Step func(part, quarter int) (done bool, err error)

// Worker holds the block that a goroutine fills.
type Worker struct {
	Block
	Saved int // bytes of records that the step has copied

	s      *Saver
	header BlockHeader // of the block
	step   Step
	lead   bool // runs in the caller's goroutine
}

// laneParts is the number of parts in a lane. A worker takes steps in them in turn, so that others
// that wait for the lock of a part get it in between.
const laneParts = 16

// errCut ends a worker early, for example because the context of a partial snapshot has ended. It
// is not an error.
var errCut = errors.New("the context has ended")

// Run saves everything, with the given number of workers. The caller's goroutine is one of them.
func (s *Saver) Run(workers int) error {
	if err := s.put(s.Header.Append(nil)); err != nil {
		return err
	}
	all := make([]*Worker, workers)
	for i := range all {
		all[i] = &Worker{s: s, lead: i == 0}
		all[i].Reset()
		all[i].step = s.Walker(all[i])
	}
	all[0].header = BlockHeader{Kind: kindSizes}
	all[0].Bytes = append(all[0].Bytes, s.Sizes...)
	s.note(all[0].flush())
	for range 2 {
		all[0].header = BlockHeader{Kind: kindNames}
		err := s.Names(all[0])
		if err == nil {
			err = all[0].flush()
		}
		s.note(err)
	}
	first := 1
	if s.Partial {
		first = 0
	}
	for quarter := first; quarter <= Quarters; quarter++ {
		s.pass(all, quarter)
	}
	cut := s.err == errCut
	switch {
	case cut && s.done.Load() == 0: // names alone must not replace a good file
		return s.Context.Err()
	case s.err != nil && !cut:
		return s.err
	}
	end := End{Blocks: s.blocks.Load(), Records: s.records.Load()}
	if err := s.put(end.Append(nil, &s.Header)); err != nil {
		return err
	}
	if s.Progress != nil && !cut {
		s.Progress(int64(s.Total), int64(s.Total))
	}
	return nil
}

// pass saves a quarter of all parts by all workers. If Progress panics, the other workers end
// before the panic continues.
func (s *Saver) pass(all []*Worker, quarter int) {
	var next atomic.Int64
	walk := func(w *Worker) {
		err := s.ended()
		for err == nil {
			lane := int(next.Add(1)) - 1
			if lane*laneParts >= s.Parts {
				break
			}
			w.header = BlockHeader{Kind: kindRecords, Quarter: uint8(quarter), Lane: uint16(lane)}
			err = w.walk(lane*laneParts, min(laneParts, s.Parts-lane*laneParts), quarter)
			if err == nil || err == errCut && s.Partial {
				s.note(w.flush())
			}
		}
		s.note(err)
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

// walk saves a quarter of the n parts from first on.
func (w *Worker) walk(first, n, quarter int) error {
	var done [laneParts]bool
	for left := n; left > 0; {
		for i := range n {
			if done[i] {
				continue
			}
			if err := w.s.ended(); err != nil {
				return err
			}
			w.Saved = 0
			var err error
			if done[i], err = w.step(first+i, quarter); err != nil {
				return err
			}
			if done[i] {
				left--
			}
			w.report()
		}
	}
	return nil
}

// report passes the progress of a step to Progress.
func (w *Worker) report() {
	done, total := w.s.done.Add(int64(w.Saved)), int64(w.s.Total)
	if w.lead && w.Saved > 0 && done < total && w.s.Progress != nil {
		w.s.Progress(done, total)
	}
}

// Reserve makes room in the block for a run of n bytes. If it has less left, it is written first.
func (w *Worker) Reserve(n int) error {
	w.endRun()
	const perRecord = record.ShortHeader // the least bytes of one, whose frequency takes 2 bits
	need := n + n/perRecord/4 + 2*runHeaderSize + 2
	if w.Records > 0 && len(w.Bytes)+need > BlockHeaderSize+MaxBlock {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if cap(w.Bytes)-len(w.Bytes) < need {
		// A block that grows is copied, so it grows rarely.
		w.Bytes = slices.Grow(w.Bytes, max(need, min(7*len(w.Bytes), MaxBlock)))
	}
	return nil
}

// flush writes the block, and empties it.
func (w *Worker) flush() error {
	if len(w.Bytes) == BlockHeaderSize {
		return nil
	}
	s := w.s
	id := s.blocks.Add(1) - 1
	if id >= math.MaxUint32 {
		return fmt.Errorf("%d blocks are too many, at most %d are allowed", id, uint32(math.MaxUint32))
	}
	s.records.Add(uint64(w.Records))
	w.header.ID = uint32(id)
	err := s.put(w.Finish(w.header, s.Header.Salt))
	if cap(w.Bytes) > 2*MaxBlock {
		w.Bytes = nil // it was for a long record
	}
	w.Reset()
	return err
}

// put writes b after the bytes written before. Several workers may call it at once.
func (s *Saver) put(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil && s.err != errCut {
		return s.err
	}
	n, err := s.To.Write(b)
	s.Written += int64(n)
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
