//go:build race

package compresstest

// raceDetector reports whether the tests run under the race detector, which makes code allocate
// more.
const raceDetector = true
