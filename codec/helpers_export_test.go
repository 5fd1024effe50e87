package codec

// SetHash replaces the hash function. It must be called before the first Decode.
func (m *Memoized[V]) SetHash(hash func(data []byte) uint64) { m.values.Hash = hash }
