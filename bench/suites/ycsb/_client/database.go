package main

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/pingcap/go-ycsb/pkg/ycsb"
	"github.com/ringcache/ringcache/bench/store"
)

// errNoOrder is the answer to a scan, and so to workload E.
var errNoOrder = errors.New("a cache has no order of keys, so it cannot scan")

// rows encodes records as values, and decodes them.
type rows interface {
	encode(buf []byte, row map[string][]byte) []byte
	// decode returns the fields of a value, which may share its memory.
	decode(value []byte) (map[string][]byte, error)
	// change returns the record in old with other values for some fields.
	change(buf, old []byte, fields map[string][]byte) []byte
}

// database is a cache as go-ycsb sees it.
type database struct {
	records
	misses atomic.Int64 // reads and updates of a record that was absent
}

// records are what a database calls: encoded in a store, or objects.
type records interface {
	read(t *thread, key string) (row map[string][]byte, ok bool, err error)
	insert(t *thread, key string, row map[string][]byte) error
	update(t *thread, key string, fields map[string][]byte) (ok bool, err error)
	close()
}

// thread has the buffers of a goroutine.
type thread struct{ read, write []byte }

type threadKey struct{}

func (d *database) InitThread(ctx context.Context, _, _ int) context.Context {
	return context.WithValue(ctx, threadKey{}, &thread{})
}

func (d *database) CleanupThread(context.Context) {}

func of(ctx context.Context) *thread { return ctx.Value(threadKey{}).(*thread) }

func (d *database) Close() error {
	d.close()
	return nil
}

// Read always reads all fields, as the workloads do.
func (d *database) Read(
	ctx context.Context, _, key string, _ []string,
) (map[string][]byte, error) {
	row, ok, err := d.read(of(ctx), key)
	if !ok {
		d.misses.Add(1)
	}
	return row, err
}

func (d *database) Insert(ctx context.Context, _, key string, row map[string][]byte) error {
	return d.insert(of(ctx), key, row)
}

func (d *database) Update(ctx context.Context, _, key string, fields map[string][]byte) error {
	ok, err := d.update(of(ctx), key, fields)
	if !ok {
		d.misses.Add(1)
	}
	return err
}

func (d *database) Scan(
	context.Context, string, string, int, []string,
) ([]map[string][]byte, error) {
	return nil, errNoOrder
}

func (d *database) Delete(context.Context, string, string) error {
	return errors.New("no workload deletes")
}

var _ ycsb.DB = (*database)(nil)

// inStore keeps encoded records in a store.
type inStore struct {
	store.Store
	updater store.Updater
	rows    rows
}

// asBytes returns the bytes of a key, which a cache only reads.
func asBytes(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

func (s inStore) read(t *thread, key string) (map[string][]byte, bool, error) {
	value, ok := s.Get(t.read[:0], asBytes(key))
	if !ok {
		return nil, false, nil
	}
	t.read = value
	row, err := s.rows.decode(value)
	return row, true, err
}

func (s inStore) insert(t *thread, key string, row map[string][]byte) error {
	t.write = s.rows.encode(t.write[:0], row)
	return s.Set(asBytes(key), t.write)
}

func (s inStore) update(t *thread, key string, fields map[string][]byte) (found bool, err error) {
	err = s.updater.Update(asBytes(key), func(old []byte, ok bool) ([]byte, bool) {
		if found = ok; !ok {
			return nil, false
		}
		t.write = s.rows.change(t.write[:0], old, fields)
		return t.write, true
	})
	return found, err
}

func (s inStore) close() { _ = s.Close() }
