//go:build !linux

package store

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
