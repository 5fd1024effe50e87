package ringdebug

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringcache/ringcache"
)

const (
	// shownValue is how many bytes of a value the page shows at most.
	shownValue = 4096

	// hotKeysShown is how many of the hottest keys the page shows.
	hotKeysShown = 20
)

// entry is what the page tells of a key.
type entry struct {
	Key       string  // as a Go string literal
	KeyHex    string  //
	Namespace *string `json:",omitempty"` // as a Go string literal
	Found     bool

	KeyBytes   int
	ValueBytes int
	TTL        time.Duration // 0: never expires

	Value    []byte `json:",omitempty"` // up to shownValue bytes
	ValueCut bool   `json:",omitempty"` // there are more
}

// hotKey is a key and about how often it was read.
type hotKey struct {
	entry
	AtLeast uint64 // reads, as far as the samples tell
	AtMost  uint64
	Share   float64 // of all reads, at least
}

// hotKeys are those of a watch.
type hotKeys struct {
	Reads uint64 // about how many were reported
	OneIn uint64 // of so many reads one was sampled at the end
	Keys  []hotKey
}

// place is where keys are looked up: a cache or a namespace of it.
type place interface {
	Peek(dst, k []byte) ([]byte, bool)
	TTL(k []byte) (time.Duration, bool)
}

// placeOf returns the place of that name, or nil if there is no such namespace. It does not call
// Cache.Namespace, which would make one.
func placeOf(c *ringcache.Cache, namespace *string) place {
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

// look returns what there is of a key. In no place it is not found.
func look(in place, namespace *string, k []byte, withValue bool) entry {
	e := entry{Key: strconv.Quote(string(k)), KeyHex: hex.EncodeToString(k), KeyBytes: len(k)}
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

// hottest returns the keys that a watch has seen most, with what there is of them now.
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

// forms are the ways to write a key, the default first.
var forms = []string{"text", "quoted", "hex"}

// parseKey returns the key that is written in a form.
func parseKey(text, form string) ([]byte, error) {
	switch form {
	case "", "text":
		return []byte(text), nil
	case "quoted":
		s, err := unquote(text)
		return []byte(s), err
	case "hex":
		digits := strings.TrimPrefix(strings.Join(strings.Fields(text), ""), "0x")
		k, err := hex.DecodeString(digits)
		if err != nil {
			return nil, fmt.Errorf("%q is not hexadecimal: %w", text, err)
		}
		return k, nil
	}
	return nil, fmt.Errorf("as is %q, must be one of %q", form, forms)
}

// unquote is strconv.Unquote that also takes what is between double quotes without these.
func unquote(text string) (string, error) {
	if text == "" || !slices.Contains([]byte("\"`"), text[0]) {
		text = `"` + text + `"`
	}
	s, err := strconv.Unquote(text)
	if err != nil {
		return "", fmt.Errorf("%s is not a Go string: %w", text, err)
	}
	return s, nil
}

// parseNamespace returns the name that is written as it is or, if it begins with a quote, as a Go
// string; nil if there is none. The namespace with the empty name is "".
func parseNamespace(text string) (*string, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] == '"' || text[0] == '`' {
		name, err := unquote(text)
		return &name, err
	}
	return &text, nil
}
