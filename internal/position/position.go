// Package position is the arithmetic of positions in a byte ring: the numbers of bytes
// that were appended before, cut to a fixed number of bits.
package position

// Window is the live part of a ring's position space.
type Window struct {
	Tail uint64 // position of the oldest live byte
	Size uint64 // live bytes
	Mask uint64 // of the bits of a position
}

// Head returns the position after the newest live byte.
func (w *Window) Head() uint64 { return (w.Tail + w.Size) & w.Mask }

// Live reports whether the byte at pos was written and not yet released. Bits
// above those of a position are ignored. A stale position is told from a live
// one as long as fewer than Mask+1 bytes were appended since (I5).
func (w *Window) Live(pos uint64) bool { return (pos-w.Tail)&w.Mask < w.Size }

// Gone returns the bytes released since the stale record at pos was.
func (w *Window) Gone(pos uint64) uint64 { return (w.Tail - pos) & w.Mask }

// Age returns the bytes appended since the record at pos was.
func (w *Window) Age(pos uint64) uint64 { return (w.Head() - pos) & w.Mask }

// Outdated reports whether the stale position is so old that it must be
// forgotten: half of the position space was written since (I5).
func (w *Window) Outdated(pos uint64) bool { return !w.Live(pos) && w.Age(pos) > w.Mask/2 }
