//go:build !race

package ringrueidis_test

const raceDetector = false
