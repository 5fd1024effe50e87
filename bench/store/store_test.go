package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/store"
)

const entries = 10_000

var format = load.Format{KeySize: 16, ValueSize: 100}

// eachStore runs fn with a fresh instance of every store that keeps anything.
func eachStore(t *testing.T, fn func(t *testing.T, s store.Store)) {
	for _, info := range store.All {
		if info.Name == store.Null {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			s, err := info.New(store.Config{MaxBytes: 32 << 20, Entries: entries, EntryBytes: format.Bytes()})
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
		d, ok := s.(store.Deleter)
		if !ok {
			t.Skip("no Del")
		}
		check(t, fill(s, 0, 2, 0))
		key := make([]byte, format.KeySize)
		format.Key(key, 0)
		d.Del(key)
		if _, ok := s.Get(nil, key); ok {
			t.Fatal("the deleted key is found")
		}
		check(t, verify(s, nil, 1, 2, 0))
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

func TestFind(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range store.Names() {
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
