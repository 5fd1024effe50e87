// Package refcache holds the references that ringcache is tested against: a
// model of what a cache may answer in a single-threaded run, and a checker of
// recorded concurrent histories.
//
// Both rest on one rule. A cache may forget, so a miss is always a right
// answer; a value that was deleted, overwritten, mixed or never written is
// always a wrong one.
package refcache

import (
	"iter"
	"maps"
)

// Model knows, for every key, the values that a hit may return. The zero value
// is an empty model. V is whatever identifies a value; it need not be the value
// itself.
type Model[K, V comparable] struct {
	held map[K][]V // one candidate as a rule; more after Try
}

// Set notes a write that succeeded: the key holds v or nothing.
func (m *Model[K, V]) Set(k K, v V) {
	if m.held == nil {
		m.held = make(map[K][]V)
	}
	m.held[k] = append(m.held[k][:0], v)
}

// Try notes a write of unknown outcome: the key holds v, what it held before,
// or nothing.
func (m *Model[K, V]) Try(k K, v V) {
	if m.held == nil {
		m.held = make(map[K][]V)
	}
	m.held[k] = append(m.held[k], v)
}

// Drop notes that the key holds nothing: it was deleted, or a read missed it
// and so it must not come back.
func (m *Model[K, V]) Drop(k K) { delete(m.held, k) }

// Reset notes that no key holds anything.
func (m *Model[K, V]) Reset() { clear(m.held) }

// Hit notes that a read of k found the value for which same is true, and
// reports whether it was allowed to. From then on the key holds that value.
func (m *Model[K, V]) Hit(k K, same func(V) bool) bool {
	for _, v := range m.held[k] {
		if same(v) {
			m.Set(k, v)
			return true
		}
	}
	return false
}

// Candidates returns the values that a hit of k may return, oldest first. The
// caller must not change them.
func (m *Model[K, V]) Candidates(k K) []V { return m.held[k] }

// Len returns the number of keys that may hold something: no cache may count
// more.
func (m *Model[K, V]) Len() int { return len(m.held) }

// Keys returns the keys that may hold something, in no particular order.
func (m *Model[K, V]) Keys() iter.Seq[K] { return maps.Keys(m.held) }
