package lincheck

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// kind is what a call does to its key.
type kind uint8

const (
	set    kind = iota
	del         // answers whether the key was there
	read        // answers the version found, or absent
	has         // answers whether the key is there
	put         // SetIfAbsent: answers whether it stored; with a TTL, the version found otherwise
	change      // SetIfChanged: answers whether it stored
	swap        // CompareAndSwap: answers whether it stored
	update      // answers the version that it found last, or absent; it stores always
	take        // GetAndDel: answers the version found, or absent
	load        // GetOrLoad: answers the version found or loaded, by it or by another, or absent
)

var kindNames = [...]string{"set", "del", "read", "has", "put", "change", "swap", "update", "take",
	"load"}

// absent is the version of a key that is not there; writes count from 1.
const absent = uint64(0)

type input struct {
	kind    kind
	key     uint32
	version uint64 // of a write
	old     uint64 // of a swap
}

type output struct {
	found   bool
	version uint64 // of what was found
	loaded  bool   // by this very call
}

// cacheModel is one key of a cache that may forget. Its state is the version
// that the key holds. An eviction shows only in the answer of a later call, so
// it is taken to happen right before that call: the state need not guess it.
var cacheModel = porcupine.Model{
	Partition: byKey,
	Init:      func() any { return absent },
	Step: func(state, in, out any) (bool, any) {
		held, i, o := state.(uint64), in.(input), out.(output)
		switch i.kind {
		case set:
			return true, i.version
		case del:
			return !o.found || held != absent, absent
		case read:
			if !o.found {
				return true, absent
			}
			return held != absent && o.version == held, held
		case has:
			if !o.found {
				return true, absent
			}
			return held != absent, held
		default:
			return stepCompound(held, i, o)
		}
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		return fmt.Sprintf("%s key %d version %d: %v version %d", kindNames[i.kind], i.key, i.version,
			o.found, o.version)
	},
}

// stepCompound is the model's step for calls that look and write at once.
func stepCompound(held uint64, i input, o output) (bool, any) {
	switch i.kind {
	case put:
		if o.found {
			return true, i.version
		}
		return held != absent && (o.version == absent || o.version == held), held
	case change:
		return o.found || held == i.version, i.version
	case swap:
		switch {
		case o.found:
			return held == i.old && held != absent, i.version
		case held == i.old:
			return true, absent
		}
		return true, held
	case update:
		return o.version == absent || o.version == held, i.version
	case load:
		// Who loads writes, at some instant before a later write of the key. Who
		// waits for another's load reads what that has written: were it to bring
		// back a value that was overwritten before it came, nothing would fit.
		switch {
		case o.loaded:
			return o.version == i.version, i.version
		case !o.found:
			return true, absent
		}
		return held != absent && o.version == held, held
	default: // take
		return !o.found || held != absent && o.version == held, absent
	}
}

// byKey splits a history into one for each key: a history of a map is
// linearizable if each of its keys' is.
func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	byKey := map[uint32][]porcupine.Operation{}
	for _, op := range history {
		key := op.Input.(input).key
		byKey[key] = append(byKey[key], op)
	}
	var keys []uint32
	for key := range byKey {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	parts := make([][]porcupine.Operation, 0, len(keys))
	for _, key := range keys {
		parts = append(parts, byKey[key])
	}
	return parts
}
