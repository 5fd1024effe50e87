package ringmiddleware

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"

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
}

// index is what is known about all responses under a key.
type index struct {
	generation [16]byte

	// vary are the headers that responses of this generation depend on, sorted. It only
	// grows: responses differ more finely than they have to.
	vary []string

	// passFrom is the audience from which on requests need not wait for each other, since
	// what the handler last answered to one of them was not to be kept.
	passFrom audience
}

const (
	indexForm = 1
	passNone  = everyone + 1

	// maxVary bounds the headers that the responses under one key may depend on.
	maxVary = 32
)

func (s store) indexKey(key string) []byte { return []byte(s.prefix + "\x00u" + key) }

// entryKey returns the key of the variant that a request asks for.
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

// selecting returns the value of a header that responses depend on.
func selecting(r *http.Request, name string) string {
	if name == "Host" { // net/http moves it
		return r.Host
	}
	return strings.Join(r.Header.Values(name), ", ")
}

// index returns the index of a key, and false if there is none. It does not count as a lookup of
// the cache: of these there is to be one for each request. (An Update that changes nothing is a
// read that does not count in Stats.)
func (s store) index(key string) (x *index, ok bool) {
	_ = s.cache.Update(s.indexKey(key), func(e *ringcache.Entry[[]byte]) {
		x, ok = decodeIndex(e.Value)
	})
	return x, ok
}

// missed counts a lookup of the cache for a request whose key has no index.
func (s store) missed(key string) { s.cache.Has(s.indexKey(key)) }

// makeIndex returns the index of a key, and false if the cache does not take it.
func (s store) makeIndex(key string) (*index, bool) {
	if x, ok := s.index(key); ok {
		return x, true
	}
	fresh := &index{passFrom: passNone}
	rand.Read(fresh.generation[:])
	x := fresh
	err := s.cache.Update(s.indexKey(key), func(e *ringcache.Entry[[]byte]) {
		other, ok := decodeIndex(e.Value)
		if x = other; !ok { // nobody else was faster
			x = fresh
			e.Set(x.encode(nil))
		}
	})
	return x, err == nil
}

// changeIndex has change applied to the index of a key, and returns what it is then: nil if it
// is not of the generation of x any more. It writes only if there is a need.
func (s store) changeIndex(key string, x *index, change func(*index)) *index {
	apply := func(v []byte) (now *index, changed bool) {
		before, ok := decodeIndex(v)
		if !ok || before.generation != x.generation {
			return nil, false
		}
		now = &index{before.generation, slices.Clone(before.vary), before.passFrom}
		change(now)
		return now, !now.equal(before)
	}
	v, _ := s.cache.Peek(nil, s.indexKey(key)) // the request has looked it up before
	now, changed := apply(v)
	if !changed {
		return now
	}
	err := s.cache.Update(s.indexKey(key), func(e *ringcache.Entry[[]byte]) {
		if now, changed = apply(e.Value); changed {
			e.Set(now.encode(nil))
		}
	})
	if err != nil {
		return nil
	}
	return now
}

// entry appends the entry under a key to dst and decodes it. The entry's body is a part of
// what is returned. If it is the first look for a request, it counts as a lookup of the cache.
func (s store) entry(dst, entryKey []byte, first bool) (v []byte, f found, ok bool) {
	// In this order: should the entry be replaced in between, it is new.
	left, _ := s.cache.TTL(entryKey)
	if first {
		v, ok = s.cache.HasGet(dst, entryKey)
	} else {
		v, ok = s.cache.Peek(dst, entryKey)
	}
	if !ok {
		return v, f, false
	}
	if f.entry, ok = decodeEntry(v[len(dst):]); !ok {
		return v, f, false
	}
	f.now = f.age + max(0, f.keep()-left)
	return v, f, true
}

// put stores a response to a request, unless its key was invalidated since x was read, and
// reports whether it did.
func (s store) put(key string, x *index, r *http.Request, from audience, e *entry) bool {
	x = s.changeIndex(key, x, func(now *index) {
		now.vary = union(now.vary, e.vary())
		now.passFrom = max(now.passFrom, from+1)
	})
	if x == nil || len(x.vary) > maxVary {
		return false
	}
	if e.keep() < minKeep { // it has taken too long; and to the cache, 0 is for ever
		return false
	}
	// Should the cache not take it, it is fetched again the next time.
	v := e.encode(make([]byte, 0, len(e.body)+512))
	return s.cache.SetWithTTL(s.entryKey(x, r), v, e.keep()) == nil
}

// union returns the names that are in one of two sorted lists; a list that is too long stays
// so, whatever comes to it.
func union(a, b []string) []string {
	if len(a) > maxVary {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// pass notes that the response to a request is not to be kept.
func (s store) pass(key string, x *index, from audience) {
	s.changeIndex(key, x, func(now *index) { now.passFrom = min(now.passFrom, from) })
}

// remove deletes the variant that a request asks for.
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

// decodeIndex reads an index. It reports false for what encode has not made.
func decodeIndex(v []byte) (*index, bool) {
	x, d := &index{}, decoder{rest: v}
	d.form(indexForm)
	copy(x.generation[:], d.take(len(x.generation)))
	x.passFrom = audience(d.byte(byte(passNone)))
	for range d.length(1) {
		x.vary = append(x.vary, d.string())
	}
	return x, d.done() && slices.IsSorted(x.vary)
}
