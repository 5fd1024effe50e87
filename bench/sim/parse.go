package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse returns the policy that spec names: fifo, lru, clock, s3fifo-1, s3fifo-2
// or ring. Settings of ring follow, each after a colon: small=0.1 and ghosts=1 as
// shares, threshold=1, keep, noflow. A number after a slash deals the keys to
// that many shards.
//
//	ring:ghosts=0.4:small=0.05/512
func Parse(spec string) (Make, error) {
	name, shards, isSharded := strings.Cut(spec, "/")
	name, settings, _ := strings.Cut(name, ":")
	m, err := parseName(name, settings)
	if err != nil {
		return nil, fmt.Errorf("sim: parse policy %q: %w", spec, err)
	}
	if !isSharded {
		return m, nil
	}
	n, err := strconv.ParseUint(shards, 10, 16)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("sim: parse policy %q: %q is no number of shards", spec, shards)
	}
	return Sharded(int(n), m), nil
}

func parseName(name, settings string) (Make, error) {
	if name == "ring" {
		o, err := parseRing(settings)
		return NewRing(o), err
	}
	if settings != "" {
		return nil, fmt.Errorf("%s has no settings", name)
	}
	switch name {
	case "fifo":
		return NewFIFO, nil
	case "lru":
		return NewLRU, nil
	case "clock":
		return NewClock, nil
	case "s3fifo-1":
		return NewS3FIFO(1), nil
	case "s3fifo-2":
		return NewS3FIFO(2), nil
	}
	return nil, fmt.Errorf("%q is unknown", name)
}

func parseRing(settings string) (RingOptions, error) {
	o := Ring
	if settings == "" {
		return o, nil
	}
	for setting := range strings.SplitSeq(settings, ":") {
		if err := o.set(setting); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *RingOptions) set(setting string) (err error) {
	name, value, _ := strings.Cut(setting, "=")
	switch name {
	case "small":
		o.Small, err = strconv.ParseFloat(value, 64)
	case "ghosts":
		o.Ghosts, err = strconv.ParseFloat(value, 64)
	case "threshold":
		o.Threshold, err = strconv.Atoi(value)
	case "keep":
		o.Keep = true
	case "noflow":
		o.Flow = false
	default:
		return fmt.Errorf("setting %q is unknown", name)
	}
	if err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	if o.Small < 0 || o.Small > 1 || o.Ghosts < 0 {
		return fmt.Errorf("setting %s: out of range", setting)
	}
	return nil
}
