package store

import (
	"syscall"
	"time"
)

// sleep pauses the thread. time.Sleep would take a millisecond where nothing else runs.
func sleep(d time.Duration) {
	t := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&t, nil) // a signal may end it early
}
