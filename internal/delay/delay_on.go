//go:build ringcache_delay

// Package delay lets tests meet every window between a reader and a writer. See
// delay.go.
package delay

import (
	"math/rand/v2"
	"runtime"
)

// Enabled tells whether this is such a build.
const Enabled = true

// Point holds one caller in eight up: others run meanwhile.
func Point() {
	for n := rand.IntN(64); n < 8; n++ {
		runtime.Gosched()
	}
}
