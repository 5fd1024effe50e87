// Package store puts every cache of the comparison behind one small interface.
//
// A rival is one file: a type with Set, Get and Close, a constructor, and an
// Info that is listed in All, HitRatio, Writes or several of them. Nothing else has to know
// about it.
package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Store is what every load needs. All methods but Close are called by many
// goroutines at once.
type Store interface {
	// Set copies k and v: the caller changes both as soon as it returns.
	Set(k, v []byte) error
	// Get appends the value to dst, or reports false. A store that allocates the
	// value anyway may return it as it is when dst is empty, but it never hands
	// out memory that it still owns.
	Get(dst, k []byte) ([]byte, bool)
	// Del removes a key, which may be absent.
	Del(k []byte)
	// Close gives back what the store holds.
	Close() error
}

// Counter is a Store that knows how many entries it holds.
type Counter interface {
	Len() int
}

// Looker is a Store that can show a value without copying it. To its policy, Look
// is a Get. It is for replays that want to know about hits and not to spend their
// time on copying large values.
type Looker interface {
	// Look calls fn with the value, which is the store's own, or reports false.
	Look(k []byte, fn func(v []byte)) bool
}

// Batcher is a Store with its own batch read: vals[i] becomes the value of
// keys[i], a part of the returned slice, or nil on a miss.
type Batcher interface {
	GetBatch(dst []byte, keys, vals [][]byte) (out []byte, hits int)
}

// Updater is a Store that can replace a value in one atomic step.
type Updater interface {
	// Update sets the value that fn returns; without one, the key is absent afterwards. ok tells
	// whether there was a value, which fn must not change.
	Update(k []byte, fn func(old []byte, ok bool) (v []byte, set bool)) error
}

// Spacer is a Store with namespaces that can be invalidated as a whole.
type Spacer interface {
	Space(name string) Space
}

// Space is one namespace of a store. Keys of different namespaces never meet.
type Space interface {
	Set(k, v []byte) error
	Get(dst, k []byte) ([]byte, bool)
	// Invalidate removes all entries of the namespace.
	Invalidate() error
}

// Mover is a Store that reports what it has done to make room.
type Mover interface {
	Moves() Moves
}

// Moves counts what a store has done to make room since it was opened.
type Moves struct {
	Evicted uint64 // entries dropped although they were neither deleted nor expired
	Moved   uint64 // bytes of records copied within the store, by compaction and promotion
	Dead    uint64 // bytes that dead records occupy now
}

// Settler is a Store that leaves a part of Set to another goroutine.
type Settler interface {
	// Settle waits until all Sets that have returned are done.
	Settle()
}

// Settle waits for what s has left to other goroutines.
func Settle(s Store) {
	if settler, ok := s.(Settler); ok {
		settler.Settle()
	}
}

// Config is what a constructor is told. It is the same for every store of a load.
type Config struct {
	MaxBytes   int // bound
	Entries    int // entries to expect, for stores that can make room in advance
	EntryBytes int // bytes of one key and its value, on average

	// Grow asks for a small beginning: the load is about how a store grows, so that
	// Entries must not be used to make room in advance.
	Grow bool

	// TTL is how long every entry lives, from its last Set on, in stores that have such
	// a thing. 0 is for ever. Some count in whole seconds.
	TTL time.Duration

	// Synchronous asks for policy decisions before Set returns, of stores that can
	// leave them to another goroutine: a replay on one goroutine is faster than
	// any real load, and the policy would lag behind it.
	Synchronous bool
}

// room is the number of entries to make room for in advance.
func (c Config) room() int {
	if c.Grow {
		return 0
	}
	return c.Entries
}

// Info describes one store.
type Info struct {
	Name    string
	Module  string // module path, "" for a store that is not a separate package
	Expires bool   // keeps to Config.TTL
	Exact   bool   // counts the bytes of keys and values against MaxBytes, and nothing else
	Step    int    // MaxBytes is rounded to a multiple of this; 0 if it is not
	Least   int    // the least MaxBytes that it keeps to
	New     func(Config) (Store, error)
}

// All lists the stores of the comparison of speed and memory, in the order of
// its tables.
var All = []Info{
	ringcacheInfo,
	ringcacheFIFOInfo,
	ringcacheHugeInfo,
	fastcacheInfo,
	freecacheInfo,
	bigcacheInfo,
	ristrettoInfo,
	otterInfo,
	theineInfo,
	freelruInfo,
	phusluInfo,
	nullInfo,
}

// HitRatio lists the stores of the comparison of hit ratios, in the order of its
// tables.
var HitRatio = []Info{
	ringcacheInfo,
	ringcacheFIFOInfo,
	fastcacheInfo,
	bigcacheInfo,
	freecacheInfo,
	ristrettoInfo,
	otterInfo,
	theineInfo,
	lruInfo,
}

// Writes lists the stores of the comparison under writes, in the order of its tables.
var Writes = []Info{
	ringcacheInfo,
	ringcacheFIFOInfo,
	ringcacheFileInfo,
	coldVariant("ringcache-s2", false),
	fastcacheInfo,
	freecacheInfo,
	bigcacheInfo,
	otterInfo,
	theineInfo,
}

// Known returns every store once.
func Known() []Info {
	known := slices.Clone(All)
	for _, info := range slices.Concat(HitRatio, Compressed, Writes) {
		if !slices.Contains(Names(known), info.Name) {
			known = append(known, info)
		}
	}
	return known
}

// Find returns the store of that name.
func Find(name string) (Info, error) {
	known := Known()
	for _, info := range known {
		if info.Name == name {
			return info, nil
		}
	}
	return Info{}, fmt.Errorf("store: find %q: known are %s", name, strings.Join(Names(known), ", "))
}

// Names returns the names of stores.
func Names(infos []Info) []string {
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name
	}
	return names
}

// GetBatch reads keys with the store's own batch read where it has one, else
// with one Get per key. dst must have room for all values.
func GetBatch(s Store, dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	if b, ok := s.(Batcher); ok {
		return b.GetBatch(dst, keys, vals)
	}
	for i, k := range keys {
		from := len(dst)
		var ok bool
		if dst, ok = s.Get(dst, k); !ok {
			vals[i] = nil
			continue
		}
		vals[i] = dst[from:len(dst):len(dst)]
		hits++
	}
	return dst, hits
}

// clone is the copy that a store must make which keeps slices.
func clone(v []byte) []byte {
	c := make([]byte, len(v)) // exactly as long: append would round up to more capacity
	copy(c, v)
	return c
}
