package near

import (
	"context"
	"time"
)

// Flight is a request in progress. Callers that want the same reply wait for it.
type Flight[M any] struct {
	cmd         string
	next        *Flight[M] // another command of the same key
	start       time.Time
	deadline    int64 // the end of the caller's time to live, in ms of Unix time
	invalidated bool

	done chan struct{} // closed when msg and err are set
	msg  M
	err  error
}

// findLocked returns the flight for cmd of key, or nil if there is none.
func (s *Store[M, P]) findLocked(key, cmd string) *Flight[M] {
	f := s.flights[key]
	for f != nil && f.cmd != cmd {
		f = f.next
	}
	return f
}

// takeLocked removes the flight for cmd of key from the list and returns it, or nil if there is
// none.
func (s *Store[M, P]) takeLocked(key, cmd string) *Flight[M] {
	f := s.findLocked(key, cmd)
	if f == nil {
		return nil
	}
	first := s.flights[key]
	switch {
	case first != f:
		prev := first
		for prev.next != f {
			prev = prev.next
		}
		prev.next = f.next
	case f.next != nil:
		s.flights[key] = f.next
	default:
		delete(s.flights, key)
	}
	f.next = nil
	return f
}

// expireAt returns when a reply expires: at the caller's deadline, or with the key on the server,
// at pxat (-1: never). The client computes pxat from the time at which the reply arrived, which is
// too late by the duration of the request. The remaining time is therefore counted from the start
// of the request.
func (f *Flight[M]) expireAt(pxat int64, now time.Time) int64 {
	if pxat < 0 {
		return f.deadline
	}
	return min(f.deadline, pxat-max(0, now.Sub(f.start).Milliseconds()))
}

// end gives the reply or the error to all waiting callers. The flight must not be in the list.
func (f *Flight[M]) end(msg M, err error) {
	f.msg, f.err = msg, err
	close(f.done)
}

// Wait waits for the end of the flight or of ctx.
func (f *Flight[M]) Wait(ctx context.Context) (M, error) {
	select {
	case <-f.done:
		return f.msg, f.err
	case <-ctx.Done():
		var none M
		return none, ctx.Err()
	}
}
