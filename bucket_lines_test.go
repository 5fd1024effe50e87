package ringcache

import (
	"math/bits"
	"testing"
	"unsafe"
)

// What lookups read of a bucket lies in as few cache lines as it can, and so does what Sets write.
func TestLayout_BucketLines(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("the lines are laid out for 64-bit platforms")
	}
	var c Cache
	var b bucket
	for _, at := range []struct {
		what        string
		offset, end uintptr
		line        uintptr
	}{
		{"what a Set writes", 0, unsafe.Offsetof(b.mu) + unsafe.Offsetof(b.mu.open), 0},
		{"the lanes", unsafe.Offsetof(b.mu) + unsafe.Offsetof(b.mu.open), unsafe.Sizeof(b.mu) - unsafe.Offsetof(b.mu.open), 1},
		{"the index's header", unsafe.Offsetof(b.index), unsafe.Offsetof(b.index.sweepAt), 1},
		{"what a Set reads", unsafe.Offsetof(b.shared), unsafe.Offsetof(b.rings) - unsafe.Offsetof(b.shared), 2},
		{"small", unsafe.Offsetof(b.rings), unsafe.Offsetof(b.rings[0].pool), 3},
		{"main", unsafe.Offsetof(b.rings) + unsafe.Sizeof(b.rings[0]), unsafe.Offsetof(b.rings[1].pool), 5},
	} {
		if first, last := at.offset/cacheLine, (at.offset+at.end-1)/cacheLine; first != at.line || last != at.line {
			t.Errorf("%s is in lines %d to %d, want %d", at.what, first, last, at.line)
		}
	}
	if size := unsafe.Sizeof(b); size%cacheLine != 0 || unsafe.Offsetof(c.buckets) != 0 {
		t.Errorf("a bucket takes %d bytes, and the first begins at %d", size, unsafe.Offsetof(c.buckets))
	}
}
