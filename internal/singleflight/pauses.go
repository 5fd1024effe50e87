package singleflight

import "sync/atomic"

const pauseBits = 12

// Pauses remembers in a fixed space until when calls are not to be made again, which have
// failed. Keys may share a place: then they share a pause, or one ends early.
type Pauses [1 << pauseBits]atomic.Uint32

// Begin has the calls of a key of that hash pause until a time that is not 0.
func (p *Pauses) Begin(hash uint64, until uint32) { p[hash>>(64-pauseBits)].Store(until) }

// End returns when the last pause of the key ends or has ended, 0 if there was none.
func (p *Pauses) End(hash uint64) uint32 { return p[hash>>(64-pauseBits)].Load() }
