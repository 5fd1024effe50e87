package ringdebug

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/ringcache/ringcache"
)

// report describes a cache on the page. Its exported fields are the JSON.
type report struct {
	Name     string
	Options  settings
	Stats    ringcache.Stats // since the cache was made
	HitRatio float64

	// Notes tell an operator what to look at: for the watched time, or else since the start.
	Notes []string

	Namespaces []namespace `json:",omitempty"` // the largest first; only if one cache is shown
	Watched    *watched    `json:",omitempty"`
}

// watched describes the time of a watch.
type watched struct {
	Seconds  float64
	Stats    ringcache.Stats // counters of that time, gauges of its end
	HitRatio float64
	HotKeys  *hotKeys // null: the program reports no reads
}

// namespace describes a namespace: its name and the statistics that are kept for each namespace.
type namespace struct {
	Name     string // as a Go string literal
	HitRatio float64

	GetCalls, Misses, SetCalls, DelCalls, EntriesCount, BytesSize uint64
}

// settings are the fields of the Options. A function is true, a Compressor is its ID.
type settings map[string]any

// settingsOf returns the settings of a cache.
func settingsOf(c *ringcache.Cache) settings {
	all, o := settings{}, reflect.ValueOf(c.Options())
	for i := range o.NumField() {
		value := o.Field(i).Interface()
		switch v := value.(type) {
		case ringcache.Policy, ringcache.HugePages:
			value = fmt.Sprint(v)
		case func(ringcache.Removal):
			value = v != nil
		case nil: // the only interface
			value = ""
		case ringcache.Compressor:
			value = v.ID()
		}
		all[o.Type().Field(i).Name] = value
	}
	return all
}

// reportOf returns the present report of a cache.
func reportOf(name string, c *ringcache.Cache) *report {
	s := c.Stats()
	return &report{
		Name: name, Options: settingsOf(c), Stats: s, HitRatio: s.HitRatio(),
	}
}

// recent returns the statistics that the notes are about.
func (r *report) recent() ringcache.Stats {
	if r.Watched != nil {
		return r.Watched.Stats
	}
	return r.Stats
}

// namespacesOf returns the namespaces of a cache, the largest first.
func namespacesOf(c *ringcache.Cache) (all []namespace) {
	for name, n := range c.Namespaces() {
		s := n.Stats()
		all = append(all, namespace{
			Name: strconv.Quote(name), HitRatio: s.HitRatio(),
			GetCalls: s.GetCalls, Misses: s.Misses, SetCalls: s.SetCalls, DelCalls: s.DelCalls,
			EntriesCount: s.EntriesCount, BytesSize: s.BytesSize,
		})
	}
	slices.SortFunc(all, func(a, b namespace) int {
		return cmp.Or(cmp.Compare(b.BytesSize, a.BytesSize), cmp.Compare(a.Name, b.Name))
	})
	return all
}
