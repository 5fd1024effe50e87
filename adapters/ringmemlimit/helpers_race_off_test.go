//go:build !race

package ringmemlimit

const raceDetector = false
