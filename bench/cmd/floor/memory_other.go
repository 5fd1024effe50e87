//go:build !linux

package main

// memory is a working set on pages as the system gives them.
type memory struct{ words []uint64 }

func newMemory(bytes int, _ bool) (*memory, error) {
	return &memory{make([]uint64, bytes/8)}, nil
}

func (m *memory) isLarge() bool { return false }
func (m *memory) free()         {}
