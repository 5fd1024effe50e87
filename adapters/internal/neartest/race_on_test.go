//go:build race

package neartest

// raceDetector reports whether the tests run under the race detector, which makes code allocate
// more.
const raceDetector = true
