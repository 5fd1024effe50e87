// Package position implements the arithmetic of positions in a byte ring. A position is the number
// of bytes that were appended before, truncated to a fixed number of bits.
package position

// Window is the live part of a ring's position space.
type Window struct {
	Tail uint64 // position of the oldest live byte
	Size uint64 // live bytes
	Mask uint64 // has the bits of a position set
}

// Head returns the position after the newest live byte.
func (w *Window) Head() uint64 { return (w.Tail + w.Size) & w.Mask }

// Live reports whether the byte at pos was written and not yet released. Bits above those of a
// position are ignored. A stale position is not mistaken for a live one if fewer than Mask+1 bytes
// were appended since (I5).
func (w *Window) Live(pos uint64) bool { return (pos-w.Tail)&w.Mask < w.Size }

// Gone returns the number of bytes from the stale position pos to the tail.
func (w *Window) Gone(pos uint64) uint64 { return (w.Tail - pos) & w.Mask }

// Age returns the number of bytes from pos to the head: those appended since, including the record
// at pos.
func (w *Window) Age(pos uint64) uint64 { return (w.Head() - pos) & w.Mask }

// Outdated reports whether pos is stale and so old that its slot must be dropped: half of the
// position space was written since (I5).
func (w *Window) Outdated(pos uint64) bool { return !w.Live(pos) && w.Age(pos) > w.Mask/2 }
