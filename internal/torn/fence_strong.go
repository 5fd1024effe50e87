//go:build amd64 || 386 || s390x

package torn

// Fence keeps the loads before it before the loads behind it. These processors do
// so by themselves.
func Fence() {}
