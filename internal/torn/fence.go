package torn

import (
	"runtime"
	"sync/atomic"
)

// Fence keeps the loads before it before the loads behind it. An atomic
// read-modify-write of a separate word does; some processors do by themselves.
func Fence() {
	switch runtime.GOARCH { // a constant: no code is left there
	case "amd64", "386", "s390x":
		return
	}
	var word atomic.Uint32
	word.Add(1)
}
