package ringtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func wroteAt(v, begin, end uint64) historyOp { return historyOp{opWrote, v, begin, end} }
func removedAt(begin, end uint64) historyOp  { return historyOp{opRemoved, 0, begin, end} }
func readAt(v, begin, end uint64) historyOp  { return historyOp{opRead, v, begin, end} }
func historyOf(all ...historyOp) []historyOp { return all }

func TestHistory_Legal(t *testing.T) {
	for name, ops := range map[string][]historyOp{
		"empty":      nil,
		"last write": historyOf(wroteAt(1, 1, 2), wroteAt(2, 3, 4), readAt(2, 5, 6)),
		"overlapping write": historyOf(
			wroteAt(1, 1, 2), wroteAt(2, 3, 6), readAt(1, 4, 5), readAt(2, 4, 5)),
		"read overlaps its write": historyOf(readAt(1, 1, 3), wroteAt(1, 2, 4)),
		"two writes side by side": historyOf(
			wroteAt(1, 1, 4), wroteAt(2, 2, 3), readAt(1, 5, 6), readAt(2, 7, 8)),
		"remove beside the write": historyOf(wroteAt(1, 1, 3), removedAt(2, 4), readAt(1, 5, 6)),
		"remove beside the read":  historyOf(wroteAt(1, 1, 2), removedAt(3, 5), readAt(1, 4, 6)),
		"out of order":            historyOf(readAt(2, 5, 6), wroteAt(2, 3, 4), wroteAt(1, 1, 2)),
		"written again after remove": historyOf(
			wroteAt(1, 1, 2), removedAt(3, 4), wroteAt(2, 5, 6), readAt(2, 7, 8)),
	} {
		assert.NoError(t, checkHistory(ops), "%s", name)
	}
}

func TestHistory_Illegal(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []historyOp
		part string
	}{
		"never written":   {historyOf(wroteAt(1, 1, 2), readAt(9, 3, 4)), "nobody wrote"},
		"from the future": {historyOf(readAt(1, 1, 2), wroteAt(1, 3, 4)), "only later"},
		"overwritten":     {historyOf(wroteAt(1, 1, 2), wroteAt(2, 3, 4), readAt(1, 5, 6)), "stale"},
		"deleted":         {historyOf(wroteAt(1, 1, 2), removedAt(3, 4), readAt(1, 5, 6)), "stale"},
		"hidden behind a longer write": {historyOf(
			wroteAt(1, 1, 2), wroteAt(2, 3, 20), wroteAt(3, 4, 5), readAt(1, 6, 7)), "stale"},
		"old value long after": {historyOf(
			wroteAt(1, 1, 2), wroteAt(2, 3, 4), wroteAt(3, 5, 6),
			readAt(3, 7, 8), readAt(2, 9, 10)), "stale"},
	} {
		err := checkHistory(c.ops)
		assert.ErrorContains(t, err, c.part, name)
	}
}

func missAt(begin, end uint64) historyOp { return historyOp{opMissed, 0, begin, end} }

func TestHistory_Misses(t *testing.T) {
	for name, ops := range map[string][]historyOp{
		"empty":                historyOf(missAt(1, 2)),
		"before the write":     historyOf(missAt(1, 2), wroteAt(1, 3, 4)),
		"beside the write":     historyOf(missAt(1, 3), wroteAt(1, 2, 4)),
		"removed":              historyOf(wroteAt(1, 1, 2), removedAt(3, 4), missAt(5, 6)),
		"removed meanwhile":    historyOf(wroteAt(1, 1, 2), missAt(3, 5), removedAt(4, 6)),
		"removed by the write": historyOf(wroteAt(1, 1, 3), removedAt(2, 4), missAt(5, 6)),
	} {
		assert.NoError(t, checkMisses(ops), name)
	}
	for name, ops := range map[string][]historyOp{
		"lost":             historyOf(wroteAt(1, 1, 2), missAt(3, 4)),
		"removed before":   historyOf(removedAt(1, 2), wroteAt(1, 3, 4), missAt(5, 6)),
		"removed later":    historyOf(wroteAt(1, 1, 2), missAt(3, 4), removedAt(5, 6)),
		"written anew":     historyOf(wroteAt(1, 1, 2), removedAt(3, 4), wroteAt(2, 5, 6), missAt(7, 8)),
		"while it changes": historyOf(wroteAt(1, 1, 2), wroteAt(2, 3, 6), missAt(4, 5)),
	} {
		assert.ErrorContains(t, checkMisses(ops), "nothing removed it", name)
	}
}
