package system

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Slices of memory that faults, as that of a mapped file does that somebody cuts short.
// With debug.SetPanicOnFault that is a panic, which must find no lock held.

// faulty returns n bytes of which only the first good may be read.
func faulty(t *testing.T, good, n int) []byte {
	t.Helper()
	page := os.Getpagesize()
	whole := good / page * page // the others lie before the last page
	f, err := os.Create(filepath.Join(t.TempDir(), "short"))
	require.NoError(t, err)
	defer f.Close()
	size := whole + (n/page+2)*page
	require.NoError(t, f.Truncate(int64(size)))
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	end := whole
	if good%page > 0 {
		end += page
	}
	require.NoError(t, f.Truncate(int64(end)))
	return b[end-good:][:n:n]
}

// faults runs fn, and returns an error unless it panics with a fault that can be
// recovered from.
func faults(fn func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if _, ok := r.(runtime.Error); !ok {
			err = fmt.Errorf("it did not fault, recovered %v", r)
		}
	}()
	fn()
	return nil
}

// faultyCalls are the calls that read a value, key or old value of their caller's.
func faultyCalls(k, good, bad, badKey []byte) map[string]func(c *ringcache.Cache) {
	return map[string]func(c *ringcache.Cache){
		"Set":          func(c *ringcache.Cache) { _ = c.Set(k, bad) },
		"SetIfChanged": func(c *ringcache.Cache) { _, _ = c.SetIfChanged(k, bad) },
		"SetIfAbsent": func(c *ringcache.Cache) {
			c.Del(k)
			_, _ = ringtest.SetIfAbsent(c, k, bad)
		},
		"SetBatch":            func(c *ringcache.Cache) { _ = c.SetBatch([][]byte{k}, [][]byte{bad}) },
		"Append":              func(c *ringcache.Cache) { _ = c.Update(k, ringtest.Append(bad)) },
		"CompareAndSwap, new": func(c *ringcache.Cache) { _, _ = c.CompareAndSwap(k, good, bad) },
		"CompareAndSwap, old": func(c *ringcache.Cache) { _, _ = c.CompareAndSwap(k, bad, good) },
		"Update": func(c *ringcache.Cache) {
			_ = c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) { return bad, true }))
		},
		"Get, key":          func(c *ringcache.Cache) { c.Get(nil, badKey) },
		"Set, key":          func(c *ringcache.Cache) { _ = c.Set(badKey, good) },
		"SetIfChanged, key": func(c *ringcache.Cache) { _, _ = c.SetIfChanged(badKey, good) },
		"SetBatch, key": func(c *ringcache.Cache) {
			_ = c.SetBatch([][]byte{k, badKey}, [][]byte{good, good})
		},
		"Append, key":         func(c *ringcache.Cache) { _ = c.Update(badKey, ringtest.Append(good)) },
		"CompareAndSwap, key": func(c *ringcache.Cache) { _, _ = c.CompareAndSwap(badKey, good, good) },
	}
}

// A fault while a call reads what it was given leaves no lock held, the bucket sound, and
// of the key's value the old one or none.
func TestFault_LeavesNoLockHeld(t *testing.T) {
	oneBucket, oneHash := ringtest.Tiny(1, 1024, 256), ringtest.Tiny(2, 1024, 128)
	oneHash.Seed = [2]uint64{}
	k := []byte("key")
	for name, tt := range map[string]struct {
		g         ringtest.Shape
		good, all int // bytes of the faulty value that can be read, and all of them
		old       int // bytes of the value that is there before
	}{
		"new":                   {oneBucket, 0, 100, -1},
		"same length":           {oneBucket, 0, 100, 100},
		"other length":          {oneBucket, 0, 100, 50},
		"in the middle":         {oneBucket, 50, 100, 100},
		"in a later chunk":      {oneBucket, 3000, 8000, 8000},
		"large":                 {oneHash, 10_000, oneHash.MaxBytes / 16, 100},
		"large over large":      {oneHash, 10_000, oneHash.MaxBytes / 16, oneHash.MaxBytes / 16},
		"large, other length":   {oneHash, 0, oneHash.MaxBytes / 16, oneHash.MaxBytes/16 - 1},
		"small, large is there": {oneHash, 0, 100, oneHash.MaxBytes / 16},
	} {
		good, bad, badKey := make([]byte, max(tt.old, 0)), faulty(t, tt.good, tt.all), faulty(t, 0, 20)
		for i := range good {
			good[i] = byte(i%251) + 1
		}
		copy(good, bad[:tt.good]) // or a comparison would not get to where it faults
		for call, do := range faultyCalls(k, good, bad, badKey) {
			if call == "CompareAndSwap, new" && tt.old < 0 ||
				call == "CompareAndSwap, old" && len(good) != len(bad) {
				continue // they do not come to read it
			}
			t.Run(name+"/"+call, func(t *testing.T) {
				c := ringtest.NewCache(tt.g)
				require.NoError(t, ringtest.InTime(func() error {
					return faultIn(c, k, good, tt.old >= 0, do)
				}))
			})
		}
	}
}

// faultIn makes a call that faults, and sees whether the cache works afterwards.
func faultIn(c *ringcache.Cache, k, old []byte, has bool, do func(c *ringcache.Cache)) error {
	if has {
		if err := c.Set(k, old); err != nil {
			return err
		}
	}
	if err := faults(func() { do(c) }); err != nil {
		return err
	}
	if err := ringtest.Validate(c); err != nil {
		return err
	}
	if got, ok := c.HasGet(nil, k); ok && !(has && bytes.Equal(got, old)) {
		return fmt.Errorf("Get finds %d bytes that nobody set: %.20x", len(got), got)
	}
	for i := range 20 { // moves and drops what is there
		if err := c.Set(k, make([]byte, 10*i)); err != nil {
			return err
		}
	}
	if n := c.Len(); n != 1 {
		return fmt.Errorf("Len is %d", n)
	}
	return ringtest.Usable(c, k, []byte("after"))
}

// A reader that cannot write to dst leaves no lock held either.
func TestFault_DstCannotBeWritten(t *testing.T) {
	k, v := []byte("key"), make([]byte, 300)
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(b)) }()
	for name, do := range map[string]func(c *ringcache.Cache){
		"Get":       func(c *ringcache.Cache) { c.Get(b[:0], k) },
		"GetBatch":  func(c *ringcache.Cache) { c.GetBatch(b[:0], [][]byte{k, k}, make([][]byte, 2)) },
		"GetAndDel": func(c *ringcache.Cache) { c.GetAndDel(b[:0], k) },
	} {
		t.Run(name, func(t *testing.T) {
			c := ringtest.NewCache(ringtest.Tiny(1, 1024, 64))
			require.NoError(t, ringtest.InTime(func() error { return faultIn(c, k, v, true, do) }))
		})
	}
}

// A value that faults where the older one was dead already, and the tail has passed
// it: what is left is sound.
func TestFault_WhileReplacingTheOldest(t *testing.T) {
	bad := faulty(t, 600, 900)
	for n := range 120 {
		c := ringtest.NewCache(ringtest.Tiny(1, 1024, 128))
		ringtest.FillCache(t, c, 0, 4000, 60+n/12)
		id := 0
		for ; !c.Has([]byte{byte(id), byte(id >> 8), 0, 0, 0, 0, 0, 0}); id++ {
		}
		id += n % 12
		func() {
			defer func() { require.NotNil(t, recover(), "nothing has faulted") }()
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			_ = c.Set([]byte{byte(id), byte(id >> 8), 0, 0, 0, 0, 0, 0}, bad)
		}()
		require.NoError(t, ringtest.InTime(func() error { return ringtest.Validate(c) }))
		ringtest.CloseCache(t, c)
	}
}

// A value that was overwritten by halves when its Set faulted is gone.
func TestFault_LeavesNoMixture(t *testing.T) {
	page := os.Getpagesize()
	bad, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(bad)) })
	// In the middle: a copy that begins with the last bytes is to come so far.
	require.NoError(t, unix.Mprotect(bad[page:2*page], unix.PROT_NONE))
	for name, k := range map[string][]byte{"short": []byte("key"), "long": make([]byte, 100)} {
		c := ringtest.MustCache(t, ringtest.Tiny(1, 32<<10, 64))
		old := bytes.Repeat([]byte("o"), len(bad))
		require.NoError(t, c.Set(k, old))
		require.NoError(t, faults(func() { _ = c.Set(k, bad) }))
		got, ok := c.HasGet(nil, k)
		require.True(t, !ok || bytes.Equal(got, old), "%s: a mixture", name)
	}
}

// A value that faults while it replaces one of the cold part, whose record is dead already, leaves
// nothing of that.
func TestFault_WhileReplacingACold(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	k, bad := []byte("key"), faulty(t, 0, 900)
	p.SetPacked(t, k, func() error { return p.Set(k, ringtest.Text(1, 900)) })
	require.NoError(t, faults(func() { _ = p.Set(k, bad) }))
	require.NoError(t, ringtest.Validate(p.Cache))
	require.False(t, p.Has(k))
}
