package sim

// sharded deals the keys to policies that know nothing of each other.
type sharded struct {
	shards []Policy
	shard  []uint16 // of every key
	local  []uint32 // its number there
}

// Sharded returns n independent policies that share the capacity, each for the
// keys whose hash falls to it, as the buckets of a cache.
func Sharded(n int, each Make) Make {
	if n <= 1 {
		return each
	}
	return func(capacity int64, keys int) Policy {
		s := &sharded{shard: make([]uint16, keys), local: make([]uint32, keys)}
		counts := make([]int, n)
		for key := range keys {
			i := mix(uint64(key)) % uint64(n)
			s.shard[key], s.local[key] = uint16(i), uint32(counts[i])
			counts[i]++
		}
		for i, count := range counts {
			// What does not divide goes to the first ones.
			share := (capacity + int64(n-1-i)) / int64(n)
			s.shards = append(s.shards, each(share, count))
		}
		return s
	}
}

func (s *sharded) Access(key, size uint32) bool {
	return s.shards[s.shard[key]].Access(s.local[key], size)
}

func (s *sharded) Get(key uint32) bool {
	return s.shards[s.shard[key]].Get(s.local[key])
}

func (s *sharded) Used() int64 {
	var used int64
	for _, p := range s.shards {
		used += p.Used()
	}
	return used
}

// mix spreads x over 64 bits: the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
