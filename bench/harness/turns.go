package harness

import (
	"slices"
	"strings"
)

const (
	// ending ends the name of a store that runs in the baseline, another build of the program.
	ending = "-baseline"
	// oldRingcache is the store that a baseline usually is for.
	oldRingcache = "ringcache" + ending
)

// Bare returns the name that a store has in the program that runs it.
func Bare(name string) string { return strings.TrimSuffix(name, ending) }

func isBaseline(name string) bool { return strings.HasSuffix(name, ending) }

// Turns returns the names in the order of one turn. Another store begins each time, and every
// second round goes backwards, so that no store always follows the same one.
func Turns(names []string, turn, round int) []string {
	if len(names) == 0 {
		return nil
	}
	first := (turn + round) % len(names)
	names = slices.Concat(names[first:], names[:first])
	if round%2 == 1 {
		slices.Reverse(names[1:])
	}
	return names
}
