package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// FuzzBatch sets and reads batches of any keys, empty and repeated ones among
// them.
func FuzzBatch(f *testing.F) {
	ringtest.AddStreams(f, 400)
	f.Fuzz(func(t *testing.T, shape byte, data []byte) {
		c := ringtest.MustCache(t, ringtest.Roomy(shape))
		in := ringtest.Input(data)
		last := map[string]ringtest.Stamp{}
		for version := uint64(1); len(in) > 0 && version <= 4; version++ {
			keys := setAnyBatch(t, c, &in, last, version)
			in.Sink(c)
			getAnyBatch(t, c, keys, last)
		}
		for k, s := range last {
			if v, ok := c.HasGet(nil, []byte(k)); ok && !s.Wrote(v) || !ok && ringtest.Lost(c) == 0 {
				require.Fail(t, "not the value", "key %q: %v, %d bytes, want %v", k, ok, len(v), s)
			}
		}
	})
}

// setAnyBatch stores a batch that is cut from the input, notes it in last, and
// returns its keys.
func setAnyBatch(
	t *testing.T, c *ringcache.Cache, in *ringtest.Input, last map[string]ringtest.Stamp,
	version uint64,
) [][]byte {
	t.Helper()
	var keys, vals [][]byte
	refused := ""
	for n := in.Byte(); n > 0 && len(*in) > 0; n-- {
		k := in.Take(int(in.Byte() % 4))
		s := ringtest.Stamp{ID: uint32(len(keys)), Version: version, Size: int(in.Byte())}
		last[string(k)] = s
		if s.Size == 255 {
			s.Size = ringtest.Shared(c).MaxValue() + 1
			delete(last, string(k))
			if refused == "" {
				refused = fmt.Sprintf("index %d:", len(keys))
			}
		}
		keys, vals = append(keys, k), append(vals, s.Value(nil))
	}
	err := c.SetBatch(keys, append(vals, []byte("beyond the keys")))
	switch {
	case refused == "" && err != nil:
		require.NoError(t, err, "SetBatch of %d", len(keys))
	case refused != "" && !(errors.Is(err, ringcache.ErrTooLarge) &&
		strings.Contains(err.Error(), refused)):
		require.ErrorIs(t, err, ringcache.ErrTooLarge, "SetBatch of %d", len(keys))
		require.ErrorContains(t, err, refused, "SetBatch of %d", len(keys))
	}
	return keys
}

// getAnyBatch reads the keys, and between them some that were never set.
func getAnyBatch(t *testing.T, c *ringcache.Cache, keys [][]byte, last map[string]ringtest.Stamp) {
	var asked [][]byte
	for i, k := range keys {
		if asked = append(asked, k); i%3 == 0 {
			asked = append(asked, append(bytes.Clone(k), "never set"...))
		}
	}
	vals := make([][]byte, len(asked)+1)
	for i := range vals {
		vals[i] = []byte("left from before")
	}
	out, hits := c.GetBatch([]byte("held "), asked, vals)
	want := []byte("held ")
	for i, k := range asked {
		s, set := last[string(k)]
		v := vals[i]
		want = append(want, v...)
		switch {
		case v == nil && set && ringtest.Lost(c) == 0:
			require.Fail(t, "it is lost", "key %d %q, want %v", i, k, s)
		case v != nil && !(set && s.Wrote(v)):
			require.Fail(t, "not the value", "key %d %q: %d bytes, want %v (%v)", i, k, len(v), s, set)
		case v != nil:
			hits--
		}
		require.Equal(t, len(v), cap(v), "value %d has room for its neighbour", i)
	}
	require.Zero(t, hits, "hits of %d beyond the values", len(asked))
	require.True(t, bytes.Equal(out, want), "GetBatch of %d: %d bytes, want %d",
		len(asked), len(out), len(want))
	require.Equal(t, "left from before", string(vals[len(asked)]))
}

// walked is a cache that is walked while entries come and go.
type walked struct {
	t    *testing.T
	c    *ringcache.Cache
	in   ringtest.Input
	held map[uint32]ringtest.Stamp
	sets uint64
}

// set stores an entry that is always small or always large, as one that
// changes sides may be seen twice.
func (w *walked) set(id uint32) {
	w.sets++
	s := ringtest.Stamp{ID: id, Version: w.sets, Size: ringtest.SelfSize + 2*int(id%64)}
	if id%64 == 9 {
		s.Size = 9 << 10
	}
	if err := w.c.Set(binary.LittleEndian.AppendUint32(nil, id), s.Value(nil)); err != nil {
		require.NoError(w.t, err)
	}
	w.held[id] = s
}

// loop walks all entries: those that are there from the beginning to the end
// must be seen once, all others at most once.
func (w *walked) loop(values bool) {
	seen, watched := map[uint32]bool{}, map[uint32]bool{}
	for id := range w.held {
		watched[id] = true
	}
	visit := func(k, v []byte) bool {
		id := ringtest.IDOf(k)
		s, ok := w.held[id]
		if seen[id] || !ok || len(k) != 4 || values && !s.Wrote(v) {
			require.Fail(w.t, "not the value", "key %x of %v comes with %d bytes; it was seen: %v",
				k, s, len(v), seen[id])
		}
		seen[id] = true
		clear(k) // both are the body's
		clear(v)
		for n := w.in.Byte() % 4; n > 0; n-- {
			id, op := uint32(w.in.Byte())|uint32(w.in.Byte())<<8&0x300, w.in.Byte()
			if len(w.in) == 0 {
				break
			}
			if op%2 == 0 {
				w.set(id)
			} else {
				w.c.Del(binary.LittleEndian.AppendUint32(nil, id))
				delete(w.held, id)
				delete(watched, id)
			}
		}
		return true
	}
	if values {
		w.c.All()(visit)
	} else {
		w.c.Keys()(func(k []byte) bool { return visit(k, nil) })
	}
	for id := range watched {
		if !seen[id] && ringtest.Lost(w.c) == 0 {
			require.Fail(w.t, "it was not seen", "key %d of %v", id, w.held[id])
		}
	}
}

// FuzzIterate walks a cache in which the body of the loop sets and deletes.
func FuzzIterate(f *testing.F) {
	ringtest.AddStreams(f, 150)
	f.Fuzz(func(t *testing.T, shape byte, data []byte) {
		w := &walked{t: t, c: ringtest.MustCache(t, ringtest.Roomy(shape)), in: data,
			held: map[uint32]ringtest.Stamp{}}
		for id := range uint32(w.in.Byte() % 160) {
			w.set(id)
		}
		for i := 0; len(w.in) > 0 && i < 2; i++ {
			for range w.in.Byte() % 16 {
				w.set(uint32(w.in.Byte()) << 2)
			}
			w.in.Sink(w.c)
			w.loop(i%2 == 0)
		}
		w.in = nil
		w.loop(true) // nothing happens meanwhile
		for range w.c.All() {
			break // and leaves no lock behind
		}
		n := w.c.Len()
		require.LessOrEqual(t, n, len(w.held), "entries that were set")
		if ringtest.Lost(w.c) == 0 {
			require.Equal(t, len(w.held), n)
		}
	})
}

// FuzzResize changes the bound of a cache between Sets and reads.
func FuzzResize(f *testing.F) {
	ringtest.AddStreams(f, 400)
	// To the same size, after a smaller one: an entry was lost.
	f.Add(byte('J'), []byte("0\r\t00\xe90 x10010010010010x\x000\xfbB0\xa3X0\xd0Y0\xf50\x0e\t0"))
	f.Fuzz(func(t *testing.T, shape byte, data []byte) {
		in := ringtest.Input(data)
		g := ringtest.Tiny(1<<(shape%3), 256, 60)
		if shape&8 != 0 {
			g.Policy = ringcache.PolicyFIFO
		}
		g = ringtest.MaybeCold(g, shape)
		c := ringtest.MustCache(t, g)
		bound, last := g.MaxBytes, map[byte]ringtest.Stamp{}
		for version := uint64(1); len(in) > 0; version++ {
			in.Sink(c)
			id, op := in.Byte(), in.Byte()
			key := bytes.Repeat([]byte{id}, 1+int(id%50))
			switch {
			case op < 16:
				bound = resizeTo(t, c, g, in.Byte())
			case op < 24: // sizes that no cache has
				n := min(int(in.Number()), 4*g.Buckets*g.ChunkSize-1)
				require.ErrorIs(t, c.Resize(n), ringcache.ErrInvalidOptions, "to %d", n)
				require.Equal(t, bound, ringtest.Shared(c).Bound(), "resized to %d", n)
			case op < 200:
				s := ringtest.Stamp{ID: uint32(id), Version: version, Size: int(in.Byte())}
				if op < 40 { // up to more than the cache takes
					s.Size = (bound/16 + 1) * s.Size / 255
				}
				err := c.Set(key, s.Value(nil))
				delete(last, id)
				if s.Size > bound/16 {
					require.ErrorIs(t, err, ringcache.ErrTooLarge, "set %v in %d bytes", s, bound)
					require.False(t, c.Has(key), "set %v in %d bytes", s, bound)
				} else if last[id] = s; err != nil || !c.Has(key) {
					require.Fail(t, "not set, or a miss", "set %v in %d bytes: %v", s, bound, err)
				}
			default:
				c.Del(key)
				delete(last, id)
			}
			if v, ok := c.HasGet(nil, key); ok && !last[id].Wrote(v) {
				require.Fail(t, "not the value", "%d bytes %.32x, want %v", len(v), v, last[id])
			}
		}
		n := 0
		for k, v := range c.All() {
			if n++; !last[k[0]].Wrote(v) {
				require.Fail(t, "not the value", "saw %d bytes %.32x, want %v", len(v), v, last[k[0]])
			}
		}
		if ringtest.PolicyOf(c).DecompressErrors == 0 {
			require.Equal(t, c.Len(), n, "entries that were seen")
		}
	})
}

// resizeTo gives the cache a size between the least and twice what it was made
// with, and returns it.
func resizeTo(t *testing.T, c *ringcache.Cache, g ringtest.Shape, part byte) int {
	before, n := ringtest.Shared(c).Bound(), c.Len()
	least := ringtest.LeastBytes(g)
	bound := least + (2*g.MaxBytes-least)*int(part)/255
	require.True(t, ringtest.Resize(c, bound), "it is closed")
	require.NoError(t, ringtest.Validate(c), "resized to %d", bound)
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, bound, s.MaxBytesSize)
	require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
	require.LessOrEqual(t, s.BytesSize, s.ReservedBytes)
	require.LessOrEqual(t, s.Corruptions, ringtest.PolicyOf(c).DecompressErrors)
	if m := c.Len(); m > n || m < n && bound >= before {
		require.Fail(t, "entries are lost", "%d of %d, resized from %d to %d", m, n, before, bound)
	}
	return bound
}

// FuzzOptions makes caches of any settings.
func FuzzOptions(f *testing.F) {
	for _, size := range []int64{
		math.MinInt64, -1, 0, 1, 40 << 20, 64 << 20, ringtest.MaxBytes + 1, math.MaxInt64,
	} {
		f.Add(size, byte(0), int64(0), int64(0), 0, size%2 == 0)
	}
	const size, hour = 1 << 20, int64(time.Hour)
	f.Add(int64(size), byte(1), hour, hour-1, 1000, true)
	f.Add(int64(size), byte(1), hour, hour, 1000, true)
	f.Add(int64(size), byte(1), int64(-1), int64(0), 0, true)
	f.Add(int64(size), byte(1), int64(60), int64(0), 0, true)
	f.Add(int64(size-1), byte(1), hour, int64(0), 0, true)
	f.Add(int64(size), byte(1), hour, int64(-1), 0, true)
	f.Add(int64(size), byte(2), hour, int64(0), 0, true)
	f.Add(int64(size), byte(0), hour, int64(0), -1, false)
	f.Add(int64(size), byte(0), int64(math.MaxInt64), int64(math.MaxInt64-1),
		math.MaxInt, false)
	f.Fuzz(func(
		t *testing.T, size int64, policy byte, ttl, ahead int64, entries int, told bool,
	) {
		if size > 64<<20 && size <= ringtest.MaxBytes {
			size %= 64 << 20
		}
		if int64(int(size)) != size {
			return // an int has 32 bits
		}
		o := ringcache.Options{
			MaxBytes:        int(size),
			Policy:          ringcache.Policy(policy % 16),
			TTL:             time.Duration(ttl),
			RefreshAhead:    time.Duration(ahead),
			HugePages:       ringcache.HugePages(policy / 16),
			ExpectedEntries: entries,
		}
		if entries%2 != 0 {
			o.Compressor = ringtest.FlateCompressor{}
		}
		var left []string
		if told {
			o.OnRemove = func(gone ringcache.Removal) {
				left = append(left, fmt.Sprintf("%s=%s %s", gone.Key, gone.Value, gone.Reason))
			}
		}
		c, err := ringcache.NewWithOptions(o)
		canBe := func(d time.Duration) bool { return d == 0 || d >= clock.Tick }
		valid := size >= ringtest.LeastMaxBytes && size <= ringtest.MaxBytes &&
			policy%16 <= 1 && policy/16 <= 2 && canBe(o.TTL) && canBe(o.RefreshAhead) &&
			(ttl == 0 || ahead < ttl) && entries >= 0
		if !valid {
			require.ErrorIs(t, err, ringcache.ErrInvalidOptions, "%+v", o)
			require.Nil(t, c, "%+v", o)
			return
		}
		require.NoError(t, err, "%+v", o)
		require.NoError(t, c.Set([]byte("k"), []byte("value")))
		// A short time to live may be over by now.
		v, ok := c.HasGet(nil, []byte("k"))
		if ok && string(v) != "value" || !ok && (ttl == 0 || ttl > int64(time.Minute)) {
			require.Fail(t, "not the value", "%+v: read %v, %q", o, ok, v)
		}
		if c.Del([]byte("k")) && told {
			require.Equal(t, []string{"k=value deleted"}, left, "%+v", o)
		}
		require.NoError(t, ringtest.Validate(c), "%+v", o)
		ringtest.CloseCache(t, c)
		require.ErrorIs(t, c.Set([]byte("k"), nil), ringcache.ErrClosed)
	})
}
