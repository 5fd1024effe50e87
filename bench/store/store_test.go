package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/store"
)

const entries = 10_000

var format = load.Format{KeySize: 16, ValueSize: 100}

// eachStore runs fn with a fresh instance of every store that keeps anything.
func eachStore(t *testing.T, fn func(t *testing.T, s store.Store)) {
	for _, info := range store.Known() {
		if info.Name == store.Null {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			s, err := info.New(store.Config{
				MaxBytes: 32 << 20, Entries: entries, EntryBytes: format.Bytes(), Synchronous: true,
			})
			if err != nil {
				t.Fatalf("cannot open: %v", err)
			}
			fn(t, s)
			if err := s.Close(); err != nil {
				t.Fatalf("cannot close: %v", err)
			}
		})
	}
}

func fill(s store.Store, from, to, version uint64) error {
	key, val := make([]byte, format.KeySize), make([]byte, format.ValueSize)
	for id := from; id < to; id++ {
		format.Key(key, id)
		format.Value(val, id, version)
		if err := s.Set(key, val); err != nil {
			return fmt.Errorf("set id %d: %w", id, err)
		}
	}
	return nil
}

func verify(s store.Store, prefix []byte, from, to, version uint64) error {
	key, dst := make([]byte, format.KeySize), make([]byte, 0, 256)
	for id := from; id < to; id++ {
		format.Key(key, id)
		v, ok := s.Get(append(dst, prefix...), key)
		if !ok {
			return fmt.Errorf("id %d is missing", id)
		}
		if string(v[:len(prefix)]) != string(prefix) {
			return fmt.Errorf("id %d: Get changed what dst held", id)
		}
		got, err := format.Verify(v[len(prefix):], id)
		if err != nil {
			return err
		}
		if got != version {
			return fmt.Errorf("id %d: got version %d, want %d", id, got, version)
		}
	}
	return nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoreKeepsWhatWasSet(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		check(t, fill(s, 0, entries, 0))
		check(t, verify(s, nil, 0, entries, 0))
		check(t, fill(s, 0, entries/2, 7))
		check(t, verify(s, nil, 0, entries/2, 7))
		check(t, verify(s, []byte("prefix"), entries/2, entries, 0))
		if err := verify(s, nil, entries, entries+1, 0); err == nil {
			t.Fatal("a key that was never set is found")
		}
	})
}

func TestStoreDeletes(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		check(t, fill(s, 0, 2, 0))
		key := make([]byte, format.KeySize)
		format.Key(key, 0)
		s.Del(key)
		if _, ok := s.Get(nil, key); ok {
			t.Fatal("the deleted key is found")
		}
		check(t, verify(s, nil, 1, 2, 0))
	})
}

func TestStoreUpdates(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		u, ok := s.(store.Updater)
		if !ok {
			t.Skip("no Update")
		}
		key := make([]byte, format.KeySize)
		for i, want := range []string{"", "a", "ab"} {
			check(t, u.Update(key, func(old []byte, ok bool) ([]byte, bool) {
				if string(old) != want || ok != (i > 0) {
					t.Errorf("update %d is given %q, %t", i, old, ok)
				}
				return append(bytes.Clone(old), byte('a'+i)), i < 2
			}))
		}
		if v, ok := s.Get(nil, key); ok {
			t.Errorf("an update without a value leaves %q", v)
		}
	})
}

func TestStoreLooks(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		l, ok := s.(store.Looker)
		if !ok {
			t.Skip("no Look")
		}
		check(t, fill(s, 0, 100, 3))
		key, found := make([]byte, format.KeySize), 0
		for id := range uint64(101) {
			format.Key(key, id)
			ok := l.Look(key, func(v []byte) {
				found++
				_, err := format.Verify(v, id)
				check(t, err)
			})
			if ok != (id < 100) {
				t.Fatalf("id %d: found is %t", id, ok)
			}
		}
		if found != 100 {
			t.Fatalf("%d values were shown", found)
		}
	})
}

func TestStoreGetBatch(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		check(t, fill(s, 0, 64, 0))
		keys, vals := make([][]byte, 65), make([][]byte, 65) // the last one is absent
		for i := range keys {
			keys[i] = make([]byte, format.KeySize)
			format.Key(keys[i], uint64(i))
			vals[i] = []byte("stale")
		}
		_, hits := store.GetBatch(s, make([]byte, 0, 1<<16), keys, vals)
		if hits != 64 || vals[64] != nil {
			t.Fatalf("unexpected batch: %d hits, absent value %q", hits, vals[64])
		}
		for i, v := range vals[:64] {
			_, err := format.Verify(v, uint64(i))
			check(t, err)
		}
	})
}

// TestStoreCounts has stores that have done all that they were to do.
func TestStoreCounts(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		c, ok := s.(store.Counter)
		if !ok {
			t.Skip("no Len")
		}
		check(t, fill(s, 0, entries, 0))
		if settler, ok := s.(store.Settler); ok {
			settler.Settle()
		}
		if c.Len() != entries {
			t.Errorf("Len is %d, want %d", c.Len(), entries)
		}
	})
}

func TestStoreConcurrent(t *testing.T) {
	const goroutines = 4
	eachStore(t, func(t *testing.T, s store.Store) {
		errs := make([]error, goroutines)
		var wg sync.WaitGroup
		for g := range uint64(goroutines) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				from, to := g*entries/goroutines, (g+1)*entries/goroutines
				errs[g] = errors.Join(fill(s, from, to, g), verify(s, nil, from, to, g))
			}()
		}
		wg.Wait()
		check(t, errors.Join(errs...))
	})
}

// TestStoreKeepsValuesOfAnySize has the lengths at which fastcache changes its
// way of storing them.
func TestStoreKeepsValuesOfAnySize(t *testing.T) {
	sizes := []int{8, 15, 16, 17, 4096, 60_000, 65_514, 65_515, 65_516, 65_536, 300_000}
	for _, info := range store.HitRatio {
		t.Run(info.Name, func(t *testing.T) {
			s, err := info.New(
				store.Config{MaxBytes: 1 << 30, Entries: len(sizes), EntryBytes: 64 << 10, Synchronous: true})
			check(t, err)
			key := make([]byte, 16)
			for i, size := range sizes {
				format.Key(key, uint64(i))
				check(t, s.Set(key, bytes.Repeat([]byte{byte(i + 1)}, size)))
			}
			for i, size := range sizes {
				format.Key(key, uint64(i))
				v, ok := s.Get([]byte("prefix"), key)
				if !ok || string(v) != "prefix"+strings.Repeat(string(rune(i+1)), size) {
					t.Errorf("value of %d bytes: found is %t, %d bytes", size, ok, len(v))
				}
			}
			check(t, s.Close())
		})
	}
}

// TestExactStoresKeepToTheirBytes wants them full, and not more than full, but for
// the few entries that theine's policy may lag behind.
func TestExactStoresKeepToTheirBytes(t *testing.T) {
	const maxBytes = 1 << 20
	key, val := make([]byte, 16), make([]byte, format.ValueSize)
	for _, info := range store.HitRatio {
		if !info.Exact {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			s, err := info.New(store.Config{
				MaxBytes: maxBytes, Entries: maxBytes / format.Bytes(), EntryBytes: format.Bytes(),
				Synchronous: true,
			})
			check(t, err)
			check(t, fill(s, 0, 4*entries, 0))
			check(t, fill(s, 0, 4*entries, 1))
			held := 0
			for id := range uint64(4 * entries) {
				format.Key(key, id)
				if v, ok := s.Get(val[:0], key); ok {
					held += len(key) + len(v)
				}
			}
			if held > maxBytes*105/100 || held < maxBytes*98/100 {
				t.Errorf("%d bytes are held of %d", held, maxBytes)
			}
			check(t, s.Close())
		})
	}
}

func TestFind(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range store.Names(store.Known()) {
		if seen[name] {
			t.Fatalf("%q is registered twice", name)
		}
		seen[name] = true
		if info, err := store.Find(name); err != nil || info.Name != name {
			t.Fatalf("cannot find %q: %v", name, err)
		}
	}
	if _, err := store.Find("nothing"); err == nil {
		t.Fatal("an unknown name is found")
	}
}
