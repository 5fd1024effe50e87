package ringmiddleware

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ringcache/ringcache"
)

// How responses are invalidated by tag and by prefix.
//
//	prefix 0 t tag, prefix 0 p path     group: its stamp
//	prefix 0 c                          clock
//
// A group is the responses with a tag, or below a path. An entry has the stamps that its groups had
// when it was stored, and is a miss unless all are still the same. Invalidating a group deletes its
// record, however many entries it has; the next entry makes another, whose stamp is new. So, as
// with the index, evictions and deletions by the user can only cause misses.
//
// A response may have been made before one of its groups was invalidated. The clock, read before
// the handler is called, shows this: a stamp that is not later than it belongs to a group that has
// not been invalidated since, and if there was no invalidation at all, the others are good too.

// clock has the latest stamp, and the stamp of the latest invalidation. Stamps of one epoch are in
// the order in which they were drawn; an epoch ends when the record is lost.
type clock struct{ epoch, stamp, purged uint64 }

const (
	maxTags  = 64 // of a response; with more it is not stored
	maxPaths = 8  // above a response; deeper ones are invalidated with the eighth
)

// groupsOf returns the groups of a response: those of its key, which are paths, and its tags.
func groupsOf(key string, header []field) []string {
	groups := pathsOf(key)
	for _, f := range header {
		var tags []string
		switch f.name {
		case "Cache-Tag":
			tags = list([]string{f.value})
		case "Surrogate-Key":
			tags = strings.FieldsFunc(f.value, func(c rune) bool { return c == ' ' || c == '\t' })
		}
		for _, tag := range tags {
			groups = append(groups, "t"+tag)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// pathsOf returns the groups of the paths above a key: for "http://host/a/b?c" these are
// "http://host", "http://host/a" and "http://host/a/b".
func pathsOf(key string) []string {
	var groups []string
	from := 0
	if i := strings.Index(key, "://"); i >= 0 && !strings.ContainsAny(key[:i], "/?\n") {
		from = i + len("://")
	}
	for i := from; i < len(key) && len(groups) < maxPaths; i++ {
		c := key[i]
		if c != '/' && c != '?' && c != '\n' {
			continue
		}
		if i > from && key[i-1] != '/' {
			groups = append(groups, "p"+key[:i])
		}
		if c != '/' {
			break
		}
	}
	return groups
}

// groupKey appends the key of a group's record to dst.
func (s store) groupKey(dst []byte, group string) []byte {
	return append(append(append(dst, s.prefix...), 0), group...)
}

// clock returns the clock, which it creates if there is none.
func (s store) clock() clock {
	if c, ok := decodeClock(s.cache.Get(nil, s.groupKey(nil, "c"))); ok {
		return c
	}
	return s.tick(false)
}

// tick advances the clock, for a new stamp or an invalidation, and returns it.
func (s store) tick(purge bool) (c clock) {
	key := s.groupKey(nil, "c")
	err := s.cache.Update(key, func(e *ringcache.Entry[[]byte]) {
		var ok bool
		c, ok = decodeClock(e.Value)
		c.stamp = max(c.stamp+1, uint64(time.Now().UnixNano())) // after an eviction too
		if !ok {
			c.epoch = rand.Uint64()
		}
		if purge || !ok {
			c.purged = c.stamp
		}
		e.Set(c.encode())
	})
	if err != nil {
		s.cache.Del(key) // the next clock has been purged since
	}
	return c
}

func (c clock) encode() []byte {
	v := binary.LittleEndian.AppendUint64(nil, c.epoch)
	v = binary.LittleEndian.AppendUint64(v, c.stamp)
	return binary.LittleEndian.AppendUint64(v, c.purged)
}

func decodeClock(v []byte) (c clock, ok bool) {
	if len(v) != 24 {
		return c, false
	}
	n := binary.LittleEndian
	return clock{n.Uint64(v), n.Uint64(v[8:]), n.Uint64(v[16:])}, true
}

// stamp returns the stamp of a group, and false if there is none.
func (s store) stamp(group string) (uint64, bool) {
	var value [8]byte
	var key [256]byte
	v := s.cache.Get(value[:0], s.groupKey(key[:0], group))
	if len(v) != len(value) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(v), true
}

// makeStamp returns the stamp of a group, which it creates if there is none. Its record exists, as
// a draft, before the stamp is drawn, and is replaced only if no invalidation has deleted it since.
// Otherwise a call that began in between would take the stamp for one of an untouched group.
func (s store) makeStamp(group string) (uint64, error) {
	key := s.groupKey(nil, group)
	for {
		if stamp, ok := s.stamp(group); ok {
			return stamp, nil
		}
		draft := append(binary.LittleEndian.AppendUint64(nil, s.tick(false).stamp), 'd')
		was, stored, err := s.cache.SetIfAbsent(nil, key, draft, s.cache.Options().TTL)
		switch {
		case err != nil:
			return 0, err
		case len(was) == 8: // another request was faster
			continue
		case !stored:
			draft = was // of another request
		}
		stamp := s.tick(false).stamp
		made, err := s.cache.CompareAndSwap(
			key, draft, binary.LittleEndian.AppendUint64(nil, stamp))
		if made || err != nil {
			return stamp, err
		}
	}
}

// stamps returns the stamps of groups for a response that the handler was called for at a time of
// the clock, and false if one of them may have been invalidated since.
func (s store) stamps(groups []string, called clock) (stamps []uint64, ok bool) {
	later := false
	for _, group := range groups {
		stamp, err := s.makeStamp(group)
		if err != nil {
			return nil, false
		}
		later = later || stamp > called.stamp
		stamps = append(stamps, stamp)
	}
	now := s.clock()
	unchanged := now.purged == called.purged || !later && now.stamp >= called.stamp
	return stamps, unchanged && now.epoch == called.epoch
}

// haveStamps reports whether the stamps of groups are still those of an entry.
func (s store) haveStamps(groups []string, stamps []uint64) bool {
	if len(groups) != len(stamps) {
		return false
	}
	for i, group := range groups {
		if now, ok := s.stamp(group); !ok || now != stamps[i] {
			return false
		}
	}
	return true
}

// purge invalidates a group, and reports whether there was one.
func (s store) purge(group string) bool {
	s.tick(true) // before, so that running calls do not make the group again
	return s.cache.Del(s.groupKey(nil, group))
}
