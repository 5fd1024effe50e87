//go:build race

package ringtest

// RaceEnabled tells that the race detector is on: it allocates, and takes memory, in places
// where a normal build does not.
const RaceEnabled = true
