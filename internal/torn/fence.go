package torn

import (
	"runtime"
	"sync/atomic"
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
