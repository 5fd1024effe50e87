//go:build !race

package ringcache

// raceEnabled tells that the race detector is on: it allocates, and takes
// memory, in places where a normal build does not.
const raceEnabled = false
