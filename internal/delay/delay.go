//go:build !ringcache_delay

// Package delay lets tests hit every window between a reader and a writer: with the build tag
// ringcache_delay, a goroutine that reaches a point may be delayed there. In all other builds,
// points do nothing.
package delay

// Enabled tells whether the build has the tag.
const Enabled = false

// Point does nothing.
func Point() {}
