package ringfile

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A word of a ring file consists of a value of valueBits bits and a check in the other bits.
const valueBits = 42

// withCheck returns the word of a value. Each place has its own salt, so that a word that was
// copied to another place fails its check.
func withCheck(value, salt uint64) uint64 {
	value &= 1<<valueBits - 1
	return value | checkOf(value, salt)<<valueBits
}

// checked returns the value of a word, and whether its check is right.
func checked(word, salt uint64) (value uint64, ok bool) {
	value = word & (1<<valueBits - 1)
	return value, word == withCheck(value, salt)
}

// checkOf returns a check of 64-valueBits bits. It is never 0, so that a word that was never
// written fails.
func checkOf(value, salt uint64) uint64 {
	hi, lo := bits.Mul64(value^0x9e3779b97f4a7c15, salt*0xff51afd7ed558ccd^0xc4ceb9fe1a85ec53)
	return max((hi^lo)>>valueBits, 1)
}

// words returns the first n words of b.
func words(b []byte, n int) []atomic.Uint64 {
	_ = b[:n*wordSize]
	// Sound: b begins at a multiple of 8 bytes and has at least n words.
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
