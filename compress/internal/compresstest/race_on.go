//go:build race

package compresstest

// raceDetector tells whether the tests run under it: it makes code allocate more.
const raceDetector = true
