package near

import (
	"context"
	"time"
)

// Flight is a request that is under way, and that others wait for who want the same reply.
type Flight[M any] struct {
	cmd         string
	next        *Flight[M] // another command of the same key
	start       time.Time
	deadline    int64 // when the caller's time to live is over, in ms of Unix time
	invalidated bool

	done chan struct{} // closed when msg and err are set
	msg  M
	err  error
}

// findLocked returns the flight of cmd of key, nil if there is none.
func (s *Store[M, P]) findLocked(key, cmd string) *Flight[M] {
	f := s.flights[key]
	for f != nil && f.cmd != cmd {
		f = f.next
	}
	return f
}

// takeLocked takes the flight of cmd of key off the list, nil if there is none.
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

// expireAt returns when a reply expires: at the caller's deadline, or when the server's
// key does, at pxat (-1: never). The client adds the key's time to live to the time when the
// reply came, which is too late by the time that the reply took. What is left of it now
// is added to the time when the request was made instead, so it is never too late.
func (f *Flight[M]) expireAt(pxat int64, now time.Time) int64 {
	if pxat < 0 {
		return f.deadline
	}
	return min(f.deadline, pxat-max(0, now.Sub(f.start).Milliseconds()))
}

// end hands the reply, or the error, to all who wait. The flight is off the list.
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
