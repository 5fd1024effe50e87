//go:build race

package zstd_test

// raceDetector tells whether the tests run under it: it makes code allocate more.
const raceDetector = true
