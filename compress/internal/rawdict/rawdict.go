// Package rawdict builds dictionaries that consist of unchanged values.
package rawdict

const (
	// Most is the greatest length of a dictionary in bytes: more gains little, zstd copies it for each
	// value, and s2 accepts no longer one.
	Most = 64 << 10

	// Least is the least length that s2 accepts.
	Least = 16
)

// Build concatenates the samples, or, if they have more than Most bytes, the same fraction of each,
// counted from its beginning: a part of every sample is better than the whole of some. It returns
// nil if the result would be shorter than Least.
func Build(samples [][]byte) []byte {
	total := 0
	for _, v := range samples {
		total += len(v)
	}
	dict := make([]byte, 0, min(total, Most))
	for _, v := range samples {
		part := uint64(len(v)) * uint64(cap(dict)) / uint64(max(total, 1))
		dict = append(dict, v[:part]...)
	}
	if len(dict) < Least {
		return nil
	}
	return dict
}
