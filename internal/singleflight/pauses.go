package singleflight

import "sync/atomic"

const pauseBits = 12

// Pauses records, in a fixed amount of memory, how long calls that have failed must not be
// repeated. Keys may share a place; they then share a pause, or a pause ends early.
type Pauses [1 << pauseBits]atomic.Uint32

// Begin makes the calls of a key with this hash pause until the given time, which must not be 0.
func (p *Pauses) Begin(hash uint64, until uint32) { p[hash>>(64-pauseBits)].Store(until) }

// End returns the time at which the last pause of the key ends or has ended, or 0 if there was
// none.
func (p *Pauses) End(hash uint64) uint32 { return p[hash>>(64-pauseBits)].Load() }
