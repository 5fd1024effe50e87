package refcache

import (
	"strings"
	"testing"
)

func write(v, begin, end uint64) Op  { return Op{Write, v, begin, end} }
func remove(begin, end uint64) Op    { return Op{Remove, 0, begin, end} }
func readOf(v, begin, end uint64) Op { return Op{Read, v, begin, end} }
func history(ops ...Op) []Op         { return ops }

func TestCheckHistory_Legal(t *testing.T) {
	for name, ops := range map[string][]Op{
		"empty":                      nil,
		"last write":                 history(write(1, 1, 2), write(2, 3, 4), readOf(2, 5, 6)),
		"overlapping write":          history(write(1, 1, 2), write(2, 3, 6), readOf(1, 4, 5), readOf(2, 4, 5)),
		"read overlaps its write":    history(readOf(1, 1, 3), write(1, 2, 4)),
		"two writes side by side":    history(write(1, 1, 4), write(2, 2, 3), readOf(1, 5, 6), readOf(2, 7, 8)),
		"remove beside the write":    history(write(1, 1, 3), remove(2, 4), readOf(1, 5, 6)),
		"remove beside the read":     history(write(1, 1, 2), remove(3, 5), readOf(1, 4, 6)),
		"out of order":               history(readOf(2, 5, 6), write(2, 3, 4), write(1, 1, 2)),
		"written again after remove": history(write(1, 1, 2), remove(3, 4), write(2, 5, 6), readOf(2, 7, 8)),
	} {
		if err := CheckHistory(ops); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckHistory_Illegal(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []Op
		part string
	}{
		"never written":   {history(write(1, 1, 2), readOf(9, 3, 4)), "nobody wrote"},
		"from the future": {history(readOf(1, 1, 2), write(1, 3, 4)), "only later"},
		"overwritten":     {history(write(1, 1, 2), write(2, 3, 4), readOf(1, 5, 6)), "stale"},
		"deleted":         {history(write(1, 1, 2), remove(3, 4), readOf(1, 5, 6)), "stale"},
		"hidden behind a longer write": {history(
			write(1, 1, 2), write(2, 3, 20), write(3, 4, 5), readOf(1, 6, 7)), "stale"},
		"old value long after": {history(
			write(1, 1, 2), write(2, 3, 4), write(3, 5, 6), readOf(3, 7, 8), readOf(2, 9, 10)), "stale"},
	} {
		err := CheckHistory(c.ops)
		if err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.part)
		}
	}
}
