package main

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"

	"github.com/maypok86/otter/v2"
	"github.com/ringcache/ringcache/bench/store"
)

// open returns the cache that the flags name, with room for twice the bytes of all records.
func open(o options) (*database, error) {
	room := 2 * (o.records + o.ops/10) * 1200 // D inserts a record in 20 operations
	switch {
	case o.store == "nothing":
		return &database{records: nothing{}}, nil
	case o.rows == "objects" && o.store != "otter":
		return nil, fmt.Errorf("%s does not store objects", o.store)
	case o.rows == "objects":
		c, err := otter.New(&otter.Options[string, map[string][]byte]{
			MaximumWeight: uint64(room), Weigher: weigh, InitialCapacity: o.records,
		})
		return &database{records: objects{c}}, err
	}
	forms := map[string]rows{"encoded": encodedRows{}, "plain": plainRows{}}
	form, ok := forms[o.rows]
	if !ok {
		return nil, fmt.Errorf("no rows %q", o.rows)
	}
	info, err := store.Find(o.store)
	if err != nil {
		return nil, err
	}
	s, err := info.New(store.Config{MaxBytes: room, Entries: o.records, EntryBytes: 1200})
	if err != nil {
		return nil, err
	}
	u, ok := s.(store.Updater)
	if !ok {
		u = &locked{Store: s, seed: maphash.MakeSeed()}
	}
	return &database{records: inStore{s, u, form}}, nil
}

// locked is a store without an atomic update: without locks one of two updates of a record would be
// lost now and then.
type locked struct {
	store.Store
	seed  maphash.Seed
	locks [512]struct {
		sync.Mutex
		buf []byte
	}
}

func (s *locked) Update(k []byte, fn func([]byte, bool) ([]byte, bool)) error {
	l := &s.locks[maphash.Bytes(s.seed, k)%uint64(len(s.locks))]
	l.Lock()
	defer l.Unlock()
	old, ok := s.Get(l.buf[:0], k)
	if ok {
		l.buf = old
	}
	if v, set := fn(old, ok); set {
		return s.Set(k, v)
	}
	s.Del(k)
	return nil
}

func weigh(key string, row map[string][]byte) uint32 {
	weight := len(key)
	for name, value := range row {
		weight += len(name) + len(value)
	}
	return uint32(weight)
}

// objects holds records as maps, which are never changed.
type objects struct {
	c *otter.Cache[string, map[string][]byte]
}

func (s objects) read(_ *thread, key string) (map[string][]byte, bool, error) {
	row, ok := s.c.GetIfPresent(key)
	return row, ok, nil
}

// insert copies the fields, whose memory go-ycsb uses again.
func (s objects) insert(_ *thread, key string, row map[string][]byte) error {
	s.c.Set(key, cloned(row))
	return nil
}

func (s objects) update(_ *thread, key string, fields map[string][]byte) (bool, error) {
	_, ok := s.c.ComputeIfPresent(key,
		func(old map[string][]byte) (map[string][]byte, otter.ComputeOp) {
			row := maps.Clone(old)
			maps.Copy(row, cloned(fields))
			return row, otter.WriteOp
		})
	return ok, nil
}

func (s objects) close() {
	s.c.InvalidateAll()
	s.c.StopAllGoroutines()
}

func cloned(row map[string][]byte) map[string][]byte {
	c := make(map[string][]byte, len(row))
	for name, value := range row {
		c[name] = bytes.Clone(value)
	}
	return c
}

// nothing shows the time of go-ycsb itself.
type nothing struct{}

func (nothing) read(*thread, string) (map[string][]byte, bool, error) { return nil, true, nil }

func (nothing) insert(*thread, string, map[string][]byte) error { return nil }

func (nothing) update(*thread, string, map[string][]byte) (bool, error) {
	return true, nil
}

func (nothing) close() {}
