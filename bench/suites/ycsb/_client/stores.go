package main

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"unsafe"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/maypok86/otter/v2"
	"github.com/ringcache/ringcache"
)

// open returns the cache that the flags name, with room for twice the bytes of all records.
func open(o options) (*database, error) {
	room := 2 * (o.records + o.ops/10) * 1200 // D inserts a record in 20 operations
	if o.rows == "objects" {
		if o.store != "otter" {
			return nil, fmt.Errorf("%s does not store objects", o.store)
		}
		c, err := openOtter(room, weighObject)
		return &database{records: objects{c}}, err
	}
	var form rows = encodedRows{}
	if o.rows == "plain" {
		form = plainRows{}
	} else if o.rows != "encoded" {
		return nil, fmt.Errorf("no rows %q", o.rows)
	}
	var s store
	switch o.store {
	case "ringcache":
		s = ringStore{ringcache.New(room)}
	case "fastcache":
		s = &fastStore{c: fastcache.New(room), seed: maphash.MakeSeed()}
	case "otter":
		c, err := openOtter(room, weighBytes)
		if err != nil {
			return nil, err
		}
		s = otterStore{c}
	case "nothing":
		return &database{records: nothing{}}, nil
	default:
		return nil, fmt.Errorf("no cache %q", o.store)
	}
	return &database{records: inStore{s, form}}, nil
}

// asBytes returns the bytes of a key, which a cache only reads.
func asBytes(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

type ringStore struct{ c *ringcache.Cache }

func (s ringStore) get(buf []byte, key string) ([]byte, bool) {
	return s.c.HasGet(buf, asBytes(key))
}

func (s ringStore) set(key string, value []byte) error {
	return s.c.Set(asBytes(key), value)
}

func (s ringStore) close() { _ = s.c.Close() }

func (s ringStore) update(key string, fn func([]byte) []byte) (found bool, err error) {
	err = s.c.Update(asBytes(key), func(e *ringcache.Entry[[]byte]) {
		if found = e.Present; found {
			e.Set(fn(e.Value))
		}
	})
	return found, err
}

// fastStore has locks for its updates: fastcache has no atomic write, and without them one of two
// updates of a record would be lost now and then.
type fastStore struct {
	c     *fastcache.Cache
	seed  maphash.Seed
	locks [512]struct {
		sync.Mutex
		buf []byte
	}
}

func (s *fastStore) get(buf []byte, key string) ([]byte, bool) {
	return s.c.HasGet(buf, asBytes(key))
}

func (s *fastStore) close() { s.c.Reset() }

func (s *fastStore) set(key string, value []byte) error {
	s.c.Set(asBytes(key), value)
	return nil
}

func (s *fastStore) update(key string, fn func([]byte) []byte) (bool, error) {
	l := &s.locks[maphash.String(s.seed, key)%uint64(len(s.locks))]
	l.Lock()
	defer l.Unlock()
	old, ok := s.c.HasGet(l.buf[:0], asBytes(key))
	if ok {
		l.buf = old
		s.c.Set(asBytes(key), fn(old))
	}
	return ok, nil
}

func openOtter[V any](room int, weigh func(string, V) uint32) (*otter.Cache[string, V], error) {
	return otter.New(&otter.Options[string, V]{MaximumWeight: uint64(room), Weigher: weigh})
}

func weighBytes(key string, value []byte) uint32 { return uint32(len(key) + len(value)) }

func weighObject(key string, row map[string][]byte) uint32 {
	weight := len(key)
	for name, value := range row {
		weight += len(name) + len(value)
	}
	return uint32(weight)
}

// otterStore holds byte slices, which are never changed.
type otterStore struct{ c *otter.Cache[string, []byte] }

func (s otterStore) get(_ []byte, key string) ([]byte, bool) { return s.c.GetIfPresent(key) }

func (s otterStore) set(key string, value []byte) error {
	s.c.Set(key, bytes.Clone(value))
	return nil
}

func (s otterStore) update(key string, fn func([]byte) []byte) (bool, error) {
	_, ok := s.c.ComputeIfPresent(key, func(old []byte) ([]byte, otter.ComputeOp) {
		return bytes.Clone(fn(old)), otter.WriteOp
	})
	return ok, nil
}

func (s otterStore) close() {
	s.c.InvalidateAll()
	s.c.StopAllGoroutines()
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
