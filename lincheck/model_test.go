package lincheck

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// kind is what a call does to its key.
type kind uint8

const (
	set  kind = iota
	del       // answers whether the key was there
	read      // answers the version found, or absent
	has       // answers whether the key is there
)

var kindNames = [...]string{"set", "del", "read", "has"}

// absent is the version of a key that is not there; writes count from 1.
const absent = uint64(0)

type input struct {
	kind    kind
	key     uint32
	version uint64 // of a set
}

type output struct {
	found   bool
	version uint64 // of a read
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
		default:
			if !o.found {
				return true, absent
			}
			return held != absent, held
		}
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		return fmt.Sprintf("%s key %d version %d: %v version %d", kindNames[i.kind], i.key, i.version, o.found, o.version)
	},
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
