//go:build !ringcache_delay

// Package delay lets tests meet every window between a reader and a writer: with
// the build tag ringcache_delay, whoever comes to a point may be held up there. In
// all other builds there is nothing.
package delay

// Enabled tells whether this is such a build.
const Enabled = false

// Point does nothing.
func Point() {}
