//go:build !ringcache_delay

package torn

// Delays tells whether the build has the tag ringcache_delay, which lets tests hit every window
// between a reader and a writer: a goroutine that calls Delay may be delayed there.
const Delays = false

// Delay does nothing in a build without the tag.
func Delay() {}
