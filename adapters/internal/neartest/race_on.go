//go:build race

package neartest

// RaceDetector tells whether the tests run under it: it makes code allocate more.
const RaceDetector = true
