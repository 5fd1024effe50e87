package measure

import "slices"

// Summary is what a table says about the rounds of one run.
type Summary struct {
	Median, Min, Max float64
	N                int
}

// Summarize returns the summary of values. That of none is zero.
func Summarize(values []float64) Summary {
	n := len(values)
	if n == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	median := sorted[n/2]
	if n%2 == 0 {
		median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return Summary{Median: median, Min: sorted[0], Max: sorted[n-1], N: n}
}
