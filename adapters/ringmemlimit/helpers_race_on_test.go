//go:build race

package ringmemlimit

const raceDetector = true
