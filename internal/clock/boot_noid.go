//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package clock

// bootID returns "": the system does not provide a name.
func bootID() string { return "" }
