package ringtest

import (
	"iter"
	"maps"
)

// The references that the cache is tested against: here a model of what it may answer
// in a single-threaded run, in history.go a checker of histories.
//
// Both rest on one rule. A cache may forget, so a miss is always a right answer; a value
// that was deleted, overwritten, mixed or never written is always a wrong one.

// refModel knows, for every key, the values that a hit may return. The zero value
// is an empty model. V is whatever identifies a value; it need not be the value
// itself.
type refModel[K, V comparable] struct {
	held map[K][]V // one candidate as a rule; more after Try
}

// Set notes a write that succeeded: the key holds v or nothing.
func (m *refModel[K, V]) Set(k K, v V) {
	if m.held == nil {
		m.held = make(map[K][]V)
	}
	m.held[k] = append(m.held[k][:0], v)
}

// Try notes a write of unknown outcome: the key holds v, what it held before,
// or nothing.
func (m *refModel[K, V]) Try(k K, v V) {
	if m.held == nil {
		m.held = make(map[K][]V)
	}
	m.held[k] = append(m.held[k], v)
}

// Drop notes that the key holds nothing: it was deleted, or a read missed it
// and so it must not come back.
func (m *refModel[K, V]) Drop(k K) { delete(m.held, k) }

// Reset notes that no key holds anything.
func (m *refModel[K, V]) Reset() { clear(m.held) }

// Hit notes that a read of k found the value for which same is true, and
// reports whether it was allowed to. From then on the key holds that value.
func (m *refModel[K, V]) Hit(k K, same func(V) bool) bool {
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
func (m *refModel[K, V]) Candidates(k K) []V { return m.held[k] }

// Len returns the number of keys that may hold something: no cache may count
// more.
func (m *refModel[K, V]) Len() int { return len(m.held) }

// Keys returns the keys that may hold something, in no particular order.
func (m *refModel[K, V]) Keys() iter.Seq[K] { return maps.Keys(m.held) }
