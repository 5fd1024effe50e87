// Package rawdict makes dictionaries of values as they are.
package rawdict

const (
	// Most is the longest dictionary in bytes: more brings little, zstd copies it for each
	// value, and s2 takes no longer one.
	Most = 64 << 10

	// Least is the shortest, as s2 has it.
	Least = 16
)

// Build returns the samples, one behind the other, or where they have more than Most bytes
// the same part of each, from its beginning: some of all is better than all of some. It
// returns nil if there are too few.
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
