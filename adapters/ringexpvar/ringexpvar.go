// Package ringexpvar publishes the statistics of caches as variables of package
// [expvar], which serves them as JSON under /debug/vars.
//
//	cache := ringcache.New(256 << 20)
//	_, err := ringexpvar.Publish("pages", cache)
//
// It is a separate module because expvar imports net/http and registers a handler, which not every
// program wants.
package ringexpvar

import (
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"sync"
	"weak"

	"github.com/ringcache/ringcache"
)

// ErrNameTaken is returned by Publish when a variable with that name has already
// been published, by this package or by any other.
var ErrNameTaken = errors.New("name is taken")

// Var is an [expvar.Var] with the [ringcache.Stats] of a cache. It is safe for
// concurrent use and must not be copied. The zero value has no cache.
//
// A Var does not keep its cache alive: once the last other reference is gone,
// the garbage collector frees the cache and its off-heap memory.
type Var struct {
	mu    sync.Mutex
	cache weak.Pointer[ringcache.Cache]
}

var _ expvar.Var = (*Var)(nil)

// New returns a Var for c without publishing it, for use in an [expvar.Map] or
// with a custom handler. New panics if c is nil; new(Var) has no cache.
func New(c *ringcache.Cache) *Var {
	v := new(Var)
	v.Set(c)
	return v
}

// publishing makes looking for a name and taking it one step.
var publishing sync.Mutex

// Publish publishes the statistics of c under name and returns the variable.
// If the name was taken before, it returns an error that is [ErrNameTaken] and changes
// nothing; [expvar.Publish] would panic. Publish panics if c is nil.
//
// Package expvar cannot unpublish a variable. A program that replaces its cache
// keeps the Var and passes the new cache to [Var.Set].
func Publish(name string, c *ringcache.Cache) (*Var, error) {
	v := New(c)
	publishing.Lock()
	defer publishing.Unlock()
	if expvar.Get(name) != nil {
		return nil, fmt.Errorf("ringexpvar: publish stats as %q: %w", name, ErrNameTaken)
	}
	expvar.Publish(name, v)
	return v, nil
}

// Set makes v report c from now on. Set panics if c is nil.
func (v *Var) Set(c *ringcache.Cache) {
	if c == nil {
		panic("ringexpvar: set cache: cache is nil")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cache = weak.Make(c)
}

// String returns the statistics as a JSON object that [encoding/json] decodes
// into a [ringcache.Stats]: all fields, under their Go names, with those of nested structs in
// objects. CompressTime is in nanoseconds. String reads the current values, as
// [ringcache.Cache.UpdateStats] does. A closed cache keeps its counters, and its
// gauges are 0 except for the two bounds. For a namespace, the object has the six
// fields that a namespace has. If there is no cache, or it has been
// collected, String returns null.
func (v *Var) String() string {
	v.mu.Lock()
	c := v.cache.Value()
	v.mu.Unlock()
	if c == nil {
		return "null"
	}
	var s ringcache.Stats
	c.UpdateStats(&s)
	if s.MaxBytesSize == 0 { // only a namespace has no bound
		b, _ := json.Marshal(map[string]uint64{
			"GetCalls": s.GetCalls, "Misses": s.Misses, "SetCalls": s.SetCalls, "DelCalls": s.DelCalls,
			"EntriesCount": s.EntriesCount, "BytesSize": s.BytesSize,
		})
		return string(b)
	}
	b, _ := json.Marshal(s) // structs of integers cannot fail
	return string(b)
}
