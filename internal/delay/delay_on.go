//go:build ringcache_delay

// Package delay lets tests hit every window between a reader and a writer. See delay.go.
package delay

import (
	"math/rand/v2"
	"runtime"
)

// Enabled tells whether the build has the tag.
const Enabled = true

// Point delays one caller in eight, so that other goroutines run meanwhile.
func Point() {
	for n := rand.IntN(64); n < 8; n++ {
		runtime.Gosched()
	}
}
