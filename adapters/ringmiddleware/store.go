package ringmiddleware

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringcache/ringcache"
)

// How responses are stored in the cache.
//
//	prefix 0 u key                    index: generation, names in Vary
//	prefix 0 v generation digest      entry: one variant of a response
//
// A generation is a random number that is never reused. A request reads the index, or creates it,
// before it calls the handler. Invalidating a key deletes its index: entries that are stored under
// the old generation, even by requests that are still running, can no longer be found, and are
// evicted like others. So an eviction, or a deletion by the user, can only cause misses.
type store struct {
	cache  *ringcache.Cache
	prefix string
	began  time.Time // with the reading of a monotonic clock
}

// now returns the time in milliseconds since 1970. The system's clock may be set back, and a
// monotonic one may stop while the machine sleeps, so it is the later one of both.
func (s store) now() int64 {
	return max(time.Now().UnixMilli(), s.began.Add(time.Since(s.began)).UnixMilli())
}

// index is what is known about all responses under a key.
type index struct {
	generation [16]byte

	// vary are the names of all headers that responses of this generation depend on, sorted. It
	// only grows, so there may be more variants than necessary.
	vary []string

	// passFrom is the smallest audience whose last response could not be stored. Requests of this
	// and larger audiences do not wait for each other.
	passFrom audience
}

const (
	indexForm = 1
	passNone  = everyone + 1

	// maxVary bounds the headers that the responses under one key may depend on.
	maxVary = 32
)

func (s store) indexKey(key string) []byte { return []byte(s.prefix + "\x00u" + key) }

// entryKey returns the key of the variant that a request selects.
func (s store) entryKey(x *index, r *http.Request) []byte {
	k := append([]byte(s.prefix+"\x00v"), x.generation[:]...)
	if len(x.vary) == 0 {
		return k
	}
	var values []byte
	for _, name := range x.vary {
		values = appendString(appendString(values, name), selecting(r, name))
	}
	digest := sha256.Sum256(values)
	return append(k, digest[:]...)
}

// selecting returns the lines of a header that responses depend on, which have no line breaks. They
// are not combined to one: most handlers read only the first.
func selecting(r *http.Request, name string) string {
	if name == "Host" { // net/http removes it from the header
		return r.Host
	}
	return strings.Join(r.Header.Values(name), "\n")
}

// index returns the index of a key, or nil if there is none.
func (s store) index(key string) *index {
	x, _ := decodeIndex(s.cache.Get(nil, s.indexKey(key)))
	return x
}

// makeIndex creates the index of a key and returns it, or the one that another request has created
// meanwhile. It returns nil if the cache does not store it.
func (s store) makeIndex(key string) *index {
	fresh := &index{passFrom: passNone}
	rand.Read(fresh.generation[:])
	x := fresh
	err := s.cache.Update(s.indexKey(key), func(e *ringcache.Entry[[]byte]) {
		if other, ok := decodeIndex(e.Value); ok { // another request was faster
			x = other
			return
		}
		x = fresh // the function may be called again, after other was deleted
		e.Set(x.encode(nil))
	})
	if err != nil {
		return nil
	}
	return x
}

// changeIndex applies change to the index of a key, and returns the result, or nil if the index no
// longer has the generation of x. It writes only if the index changes.
func (s store) changeIndex(key string, x *index, change func(*index)) (now *index) {
	err := s.cache.Update(s.indexKey(key), func(e *ringcache.Entry[[]byte]) {
		before, ok := decodeIndex(e.Value)
		if !ok || before.generation != x.generation {
			now = nil
			return
		}
		now = &index{before.generation, slices.Clone(before.vary), before.passFrom}
		change(now)
		if !now.equal(before) {
			e.Set(now.encode(nil))
		}
	})
	if err != nil {
		return nil
	}
	return now
}

// entry appends the entry for a request with a key to dst and decodes it. Its body is a part of v.
func (s store) entry(dst []byte, x *index, r *http.Request, key string) (
	v []byte, f found, ok bool,
) {
	v, ok = s.cache.HasGet(dst, s.entryKey(x, r))
	if !ok {
		return v, f, false
	}
	f.entry, ok = decodeEntry(v[len(dst):])
	if !ok || !s.haveStamps(groupsOf(key, f.header), f.stamps) {
		return v, f, false
	}
	f.now = maxTime // if it was stored in the future, by a clock that was set back since
	if since := s.now() - f.moment; since >= 0 {
		f.now = f.age + min(time.Duration(since)*time.Millisecond, maxTime)
	}
	return v, f, true
}

// put stores the response to a request, unless the key has been invalidated since x was read or one
// of its groups since the time called, and reports whether it did.
func (s store) put(
	key string, x *index, r *http.Request, from audience, e *entry, called clock,
) (ok bool) {
	x = s.changeIndex(key, x, func(now *index) {
		now.vary = union(now.vary, e.vary())
		if e.age < e.lifetime+e.whileRevalidate {
			now.passFrom = max(now.passFrom, from+1)
		} else { // each request needs an answer of its own
			now.passFrom = min(now.passFrom, from)
		}
	})
	if x == nil || len(x.vary) > maxVary {
		return false
	}
	if e.keep() < minKeep { // the handler took too long; to the cache, a TTL of 0 means no expiry
		return false
	}
	groups := groupsOf(key, e.header)
	if len(groups)-len(pathsOf(key)) > maxTags {
		return false
	}
	if e.stamps, ok = s.stamps(groups, called); !ok {
		return false
	}
	e.moment = s.now()
	if _, f, ok := s.entry(nil, x, r, key); ok && f.left() > 0 && f.made() > e.made() {
		return true // a request that did not wait for this call has stored a later response
	}
	v := e.encode(make([]byte, 0, len(e.body)+512))
	return s.cache.SetWithTTL(s.entryKey(x, r), v, e.keep()) == nil
}

// union returns the sorted names of both lists. A list that is already too long does not grow.
func union(a, b []string) []string {
	if len(a) > maxVary {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// pass records that the response to a request of an audience could not be stored.
func (s store) pass(key string, x *index, from audience) {
	s.changeIndex(key, x, func(now *index) { now.passFrom = min(now.passFrom, from) })
}

// remove deletes the variant that a request selects.
func (s store) remove(x *index, r *http.Request) { s.cache.Del(s.entryKey(x, r)) }

// invalidate deletes the index of a key.
func (s store) invalidate(key string) bool { return s.cache.Del(s.indexKey(key)) }

func (x *index) equal(y *index) bool {
	return x.generation == y.generation && x.passFrom == y.passFrom && slices.Equal(x.vary, y.vary)
}

func (x *index) encode(dst []byte) []byte {
	dst = append(dst, indexForm)
	dst = append(dst, x.generation[:]...)
	dst = append(dst, byte(x.passFrom))
	dst = binary.AppendUvarint(dst, uint64(len(x.vary)))
	for _, name := range x.vary {
		dst = appendString(dst, name)
	}
	return dst
}

// decodeIndex decodes an index. It returns false if encode did not produce v.
func decodeIndex(v []byte) (*index, bool) {
	x, d := &index{}, decoder{rest: v}
	d.form(indexForm)
	copy(x.generation[:], d.take(len(x.generation)))
	x.passFrom = audience(d.byte(byte(passNone)))
	for range d.length(1) {
		x.vary = append(x.vary, d.string())
	}
	if !d.done() || !slices.IsSorted(x.vary) {
		return nil, false
	}
	return x, true
}
