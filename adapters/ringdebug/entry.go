package ringdebug

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ringcache/ringcache"
)

const (
	// shownValue is the maximum number of bytes of a value that the page shows.
	shownValue = 4096

	// hotKeysShown is the number of hottest keys that the page shows.
	hotKeysShown = 20
)

// entry describes a key on the page.
type entry struct {
	Key       string  // as a Go string literal
	Namespace *string `json:",omitempty"` // as a Go string literal
	Found     bool

	KeyBytes   int
	ValueBytes int
	TTL        time.Duration // 0: never expires

	Value    []byte `json:",omitempty"` // up to shownValue bytes
	ValueCut bool   `json:",omitempty"` // there are more
}

// hotKey is a key with bounds on the number of its reads.
type hotKey struct {
	entry
	AtLeast uint64 // reads, estimated from samples
	AtMost  uint64
	Share   float64 // of all reads, at least
}

// hotKeys are the hottest keys of a watch.
type hotKeys struct {
	Reads uint64 // estimated number of reads reported
	OneIn uint64 // one in this many reads was sampled at the end of the watch
	Keys  []hotKey
}

// placeOf returns the cache, or its namespace of that name, or nil if there is no such namespace.
// It does not call Cache.Namespace, which would make one.
func placeOf(c *ringcache.Cache, namespace *string) *ringcache.Cache {
	if namespace == nil {
		return c
	}
	for name, n := range c.Namespaces() {
		if name == *namespace {
			return n
		}
	}
	return nil
}

// look looks up a key. If in is nil, the key is not found.
func look(in *ringcache.Cache, namespace *string, k []byte, withValue bool) entry {
	e := entry{Key: strconv.Quote(string(k)), KeyBytes: len(k)}
	if namespace != nil {
		name := strconv.Quote(*namespace)
		e.Namespace = &name
	}
	if in == nil {
		return e
	}
	ttl, _ := in.TTL(k)
	v, ok := in.Peek(nil, k)
	if !ok {
		return e
	}
	e.Found, e.ValueBytes, e.TTL = true, len(v), ttl
	if withValue {
		e.Value, e.ValueCut = v[:min(len(v), shownValue)], len(v) > shownValue
	}
	return e
}

// hottest returns the keys that were read most often during a watch, with their present entries.
func (w *watch) hottest(c *ringcache.Cache) *hotKeys {
	w.mu.Lock()
	top, total := w.keys.top(hotKeysShown), w.keys.total
	w.mu.Unlock()
	h := &hotKeys{Reads: total, OneIn: w.mask.Load() + 1, Keys: []hotKey{}}
	for _, t := range top {
		namespace, k := cutPlace(t.key)
		h.Keys = append(h.Keys, hotKey{
			entry:   look(placeOf(c, namespace), namespace, k, false),
			AtLeast: t.atLeast(), AtMost: t.count, Share: float64(t.atLeast()) / float64(total),
		})
	}
	return h
}

// parseName returns a key or the name of a namespace. A text that begins with a quote is a Go
// string, any other is the name itself.
func parseName(text string) (string, error) {
	if text == "" || text[0] != '"' && text[0] != '`' {
		return text, nil
	}
	name, err := strconv.Unquote(text)
	if err != nil {
		return "", fmt.Errorf("%s is not a Go string: %w", text, err)
	}
	return name, nil
}
