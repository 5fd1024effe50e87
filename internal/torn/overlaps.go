package torn

import "unsafe"

// Overlaps reports whether k overlaps the array of dst, even in part: a value that turns out to be
// torn would have destroyed k.
func Overlaps(dst, k []byte) bool {
	// Sound: the addresses are compared as numbers. k ends after dst begins, and by no more than the
	// sum of both lengths: d is from 1 to less than that sum.
	d := uintptr(unsafe.Pointer(unsafe.SliceData(k))) - uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	return cap(dst) > 0 && d+uintptr(len(k))-1 < uintptr(cap(dst)+len(k)-1)
}
