//go:build race

package codec_test

// raceEnabled tells that the race detector is on, under which pools drop what they are given.
const raceEnabled = true
