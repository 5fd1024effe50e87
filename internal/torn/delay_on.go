//go:build ringcache_delay

package torn

import (
	"math/rand/v2"
	"runtime"
)

// Delays tells whether the build has the tag: see delay.go.
const Delays = true

// Delay delays one caller in eight, so that other goroutines run meanwhile.
func Delay() {
	for n := rand.IntN(64); n < 8; n++ {
		runtime.Gosched()
	}
}
