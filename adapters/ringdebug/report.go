package ringdebug

import (
	"cmp"
	"slices"
	"strconv"
	"time"

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

// namespace is a part of a cache, with the figures that it has of its own.
type namespace struct {
	Name     string // as a Go string literal
	Entries  uint64
	Bytes    uint64
	HitRatio float64
	GetCalls uint64
	Misses   uint64
	SetCalls uint64
	DelCalls uint64
}

// settings are the Options in a form that can be shown.
type settings struct {
	MaxBytes          int
	Policy            string
	TTL               time.Duration
	TTLJitter         float64
	RefreshAhead      time.Duration
	RefreshTimeout    time.Duration
	StaleIfError      time.Duration
	ExpireAfterAccess time.Duration
	OnRemove          bool // there is a function
	HugePages         string
	File              string
	Version           uint64
	Compressor        string // its ID; empty: there is none
	ExpectedEntries   int
}

// settingsOf returns the settings of a cache.
func settingsOf(c *ringcache.Cache) settings {
	o := c.Options()
	s := settings{
		MaxBytes: o.MaxBytes, Policy: o.Policy.String(), TTL: o.TTL, TTLJitter: o.TTLJitter,
		RefreshAhead: o.RefreshAhead, RefreshTimeout: o.RefreshTimeout,
		StaleIfError: o.StaleIfError, ExpireAfterAccess: o.ExpireAfterAccess, OnRemove: o.OnRemove != nil,
		HugePages: o.HugePages.String(), File: o.File, Version: o.Version,
		ExpectedEntries: o.ExpectedEntries,
	}
	if o.Compressor != nil {
		s.Compressor = o.Compressor.ID()
	}
	return s
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
		all = append(all, namespace{strconv.Quote(name), s.EntriesCount, s.BytesSize, s.HitRatio(),
			s.GetCalls, s.Misses, s.SetCalls, s.DelCalls})
	}
	slices.SortFunc(all, func(a, b namespace) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}
