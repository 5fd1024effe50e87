package measure

import (
	"fmt"
	"slices"
)

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

// String is Text with three significant digits or more.
func (s Summary) String() string { return s.Text(number) }

// Text returns the median, and the range in brackets if there were several rounds; "-" for no
// value.
func (s Summary) Text(number func(float64) string) string {
	switch s.N {
	case 0:
		return "-"
	case 1:
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s-%s)", number(s.Median), number(s.Min), number(s.Max))
}

// Overlaps reports whether the ranges of s and o have a value in common. Then the rounds do
// not tell which of the two is less.
func (s Summary) Overlaps(o Summary) bool { return s.Min <= o.Max && o.Min <= s.Max }

// Over returns the ratio of the medians of s and base, with "~" before it if the ranges
// overlap; "-" if there is no ratio.
func (s Summary) Over(base Summary) string {
	if s.N == 0 || base.N == 0 || base.Median == 0 {
		return "-"
	}
	mark := ""
	if s.Overlaps(base) {
		mark = "~"
	}
	switch ratio := s.Median / base.Median; {
	case ratio >= 10:
		return fmt.Sprintf("%s%.0f", mark, ratio)
	case ratio < 0.1:
		return fmt.Sprintf("%s%.2g", mark, ratio)
	default:
		return fmt.Sprintf("%s%.2f", mark, ratio)
	}
}

// number prints at least three significant digits, and no more decimals than that takes.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
