//go:build !race

package neartest

const raceDetector = false
