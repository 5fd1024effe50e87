//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package clock

// systemBootID returns "": the system does not provide a name.
func systemBootID() string { return "" }
