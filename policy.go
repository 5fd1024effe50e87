package ringcache

import "github.com/ringcache/ringcache/internal/policy"

// Policy is the rule by which a cache chooses what to drop when it is full.
type Policy uint8

const (
	// PolicyS3FIFO keeps what is read: S3-FIFO on byte rings, with ghosts. New
	// entries prove themselves in a small ring first, so a scan does not flush
	// the cache. It is the default. See internal/policy for how it differs from
	// the paper (Yang et al., SOSP 2023).
	PolicyS3FIFO = Policy(policy.S3FIFO)

	// PolicyFIFO drops the oldest entry, read or not, as fastcache does. It has
	// the cheapest Set, and the lower hit ratio.
	PolicyFIFO = Policy(policy.FIFO)
)

// String returns the name of the policy.
func (p Policy) String() string {
	switch p {
	case PolicyS3FIFO:
		return "S3-FIFO"
	case PolicyFIFO:
		return "FIFO"
	default:
		return "unknown"
	}
}
