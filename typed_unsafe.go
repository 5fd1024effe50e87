package ringcache

import "unsafe"

// This is all of the typed views' use of unsafe.

// bytesOf returns the bytes of s where they lie. It is sound for a key because
// a Cache reads a key while a call runs, and neither writes to it nor keeps it.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// as returns *k as a T. It is sound because the caller has made sure that the
// underlying type of K is T, or an integer of the same size: a type lies in
// memory as its underlying type does.
func as[T any, K Key](k *K) T { return *(*T)(unsafe.Pointer(k)) }
