//go:build !(linux || darwin)

package clock

import "time"

// sinceBoot returns 0: the system does not provide the time.
func sinceBoot() time.Duration { return 0 }

// asleep returns zeros: no system clock is known that continues while the monotonic one stops.
func asleep() (least, most time.Duration) { return 0, 0 }
