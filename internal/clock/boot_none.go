//go:build !(linux || darwin)

package clock

import "time"

// sinceBoot reports false: the system does not provide the time.
func sinceBoot() (time.Duration, bool) { return 0, false }

// asleep returns 0: no system clock is known that continues while the monotonic one stops.
func asleep() time.Duration { return 0 }
