//go:build !(linux || darwin)

package clock

import "time"

// sinceBoot says that the system does not tell.
func sinceBoot() (time.Duration, bool) { return 0, false }

// asleep returns 0: no system clock is known that goes on while the monotonic one stops.
func asleep() time.Duration { return 0 }
