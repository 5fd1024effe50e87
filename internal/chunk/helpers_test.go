package chunk

import "unsafe"

// bytesOf returns the bytes of words, which stay reachable meanwhile.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
