package store

// What only the tests of this folder look at.

// RecountUses has the bucket count the uses of dictionaries anew.
func (b *Store) RecountUses() { b.Cold.Uses = b.Cold.countUses() }
