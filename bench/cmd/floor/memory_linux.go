package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/bench/machine"
)

const largePage = 2 << 20

// memory is a working set on pages of one size.
type memory struct {
	mapped []byte
	words  []uint64
	before int64 // large pages of the process in bytes
}

func newMemory(bytes int, large bool) (*memory, error) {
	before, _ := machine.LargePages() // if it is not known, there are none
	mapped, err := unix.Mmap(-1, 0, bytes+2*largePage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	advice := unix.MADV_NOHUGEPAGE
	if large {
		advice = unix.MADV_HUGEPAGE
	}
	if err := unix.Madvise(mapped, advice); err != nil && !large {
		return nil, fmt.Errorf("ask for small pages: %w", err)
	}
	// where a large page may begin
	start := -uintptr(unsafe.Pointer(unsafe.SliceData(mapped))) % largePage
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&mapped[start])), bytes/8)
	return &memory{mapped, words, before}, nil
}

// isLarge reports whether the system has followed the advice, once the memory has
// been written to.
func (m *memory) isLarge() bool {
	now, err := machine.LargePages()
	return err == nil && now-m.before >= int64(len(m.words)*8)*9/10
}

func (m *memory) free() { _ = unix.Munmap(m.mapped) }
