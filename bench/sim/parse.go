package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Parse returns the policy that spec names: fifo, lru, clock, s3fifo-1, s3fifo-2,
// ring or engine. Settings follow, each after a colon. Those of ring are small=0.1
// and ghosts=1 as shares, threshold=1, keep and noflow; those of engine ghosts=0.6
// and buckets=512. A number after a slash deals the keys to that many shards.
//
//	ring:ghosts=0.4:small=0.05/512
//	engine:ghosts=1
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
	switch name {
	case "ring":
		o := Ring
		err := each(settings, o.set)
		return NewRing(o), err
	case "engine":
		o := Engine
		err := each(settings, o.set)
		return NewEngine(o), err
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

// each calls set with the name and the value of each setting.
func each(settings string, set func(name, value string) error) error {
	if settings == "" {
		return nil
	}
	for setting := range strings.SplitSeq(settings, ":") {
		name, value, _ := strings.Cut(setting, "=")
		if err := set(name, value); err != nil {
			return fmt.Errorf("setting %s: %w", setting, err)
		}
	}
	return nil
}

var (
	errUnknown = errors.New("unknown")
	errRange   = errors.New("out of range")
)

func (o *RingOptions) set(name, value string) (err error) {
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
		return errUnknown
	}
	if err == nil && (o.Small < 0 || o.Small > 1 || o.Ghosts < 0) {
		return errRange
	}
	return err
}

func (o *EngineOptions) set(name, value string) (err error) {
	switch name {
	case "ghosts":
		o.Ghosts, err = strconv.ParseFloat(value, 64)
	case "buckets":
		o.Buckets, err = strconv.Atoi(value)
	default:
		return errUnknown
	}
	if err == nil && (o.Ghosts < 0 || o.Buckets < 1 || o.Buckets > 1<<16) {
		return errRange
	}
	return err
}
