// Package torn accesses bytes that a writer may change at the same time.
//
// An optimistic reader does so, and finds out afterwards, by the sequence lock, whether the bytes
// were torn.
package torn

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Fence ensures that the loads before it are not reordered with the loads after it. An atomic
// read-modify-write of any word has that effect. Some processors never reorder loads, and need
// nothing.
func Fence() {
	switch runtime.GOARCH { // a constant, so on these no code is generated
	case "amd64", "386", "s390x":
		return
	}
	var word atomic.Uint32
	word.Add(1)
}

// Overlaps reports whether k overlaps the array of dst, even in part: a value that turns out to be
// torn would have destroyed k.
func Overlaps(dst, k []byte) bool {
	// Sound: the addresses are compared as numbers. k ends after dst begins, and by no more than the
	// sum of both lengths: d is from 1 to less than that sum.
	d := uintptr(unsafe.Pointer(unsafe.SliceData(k))) - uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	return cap(dst) > 0 && d+uintptr(len(k))-1 < uintptr(cap(dst)+len(k)-1)
}
