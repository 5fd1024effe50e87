package fastcache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNew_Capacity(t *testing.T) {
	for maxBytes, want := range map[int]uint64{
		1: 32 << 20, 32 << 20: 32 << 20, 32<<20 + 1: 64 << 20, 100e6: 96 << 20, 1 << 30: 1 << 30,
	} {
		var s Stats
		c := New(maxBytes)
		c.UpdateStats(&s)
		require.Equal(t, want, s.MaxBytesSize, "New(%d)", maxBytes)
		c.Reset()
	}
	for _, n := range []int{0, -1} {
		want := fmt.Sprintf("fastcache: make cache: maxBytes must be greater than 0; got %d", n)
		require.PanicsWithError(t, want, func() { New(n) })
	}
}

func TestSet_TooLargeIsIgnored(t *testing.T) {
	c := New(1)
	defer c.Reset()
	k := []byte("key")
	c.Set(k, []byte("small"))
	c.Set(k, make([]byte, 1<<16))
	c.Set(k, make([]byte, chunkSize-4-len(k)))
	c.Set(make([]byte, 1<<16), []byte("v"))
	require.Equal(t, "small", string(c.Get(nil, k)), "an older value stays")
	require.False(t, c.Has(make([]byte, 1<<16)))

	longest := bytes.Repeat([]byte("x"), chunkSize-5-len(k))
	c.Set(k, longest)
	require.Equal(t, longest, c.Get(nil, k))

	var s Stats
	c.UpdateStats(&s)
	require.Equal(t, uint64(5), s.SetCalls)
}

func TestGet_NilIsMissOrEmpty(t *testing.T) {
	c := New(1)
	defer c.Reset()
	c.Set([]byte("empty"), nil)
	require.Nil(t, c.Get(nil, []byte("empty")))
	require.Nil(t, c.Get(nil, []byte("absent")))
	require.Equal(t, "dst", string(c.Get([]byte("dst"), []byte("absent"))))
	_, ok := c.HasGet(nil, []byte("empty"))
	require.True(t, ok)
	_, ok = c.HasGet(nil, []byte("absent"))
	require.False(t, ok)
	c.Del([]byte("empty"))
	require.False(t, c.Has([]byte("empty")))
}

func TestReset_CountersAndMemory(t *testing.T) {
	c := New(64 << 20)
	c.Set([]byte("k"), []byte("v"))
	c.SetBig([]byte("big"), []byte("v"))
	c.Get(nil, []byte("k"))
	c.GetBig(nil, []byte("k"))
	c.Reset()
	var s Stats
	c.UpdateStats(&s)
	require.Equal(t, Stats{MaxBytesSize: 64 << 20}, s)
	require.Nil(t, c.Get(nil, []byte("k")))
	c.Set([]byte("k"), []byte("v2"))
	require.Equal(t, "v2", string(c.Get(nil, []byte("k"))))
}

// A Set that returned before Reset is gone, and one that is called after it stays.
func TestReset_BesideTraffic(t *testing.T) {
	c := New(1)
	var wg sync.WaitGroup
	for g := range byte(4) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			k := []byte{g}
			for i := range 500 {
				c.Set(k, []byte{g, byte(i)})
				c.SetBig([]byte{g, g}, []byte{g})
				if v := c.Get(nil, k); v != nil {
					assert.Equal(t, []byte{g, byte(i)}, v)
				}
				if g == 0 {
					c.Reset()
				}
				var s Stats
				c.UpdateStats(&s)
			}
		}()
	}
	wg.Wait()
	c.Reset()
	require.False(t, c.Has([]byte{1}))
}

// A value that is replaced all the time is always found.
func TestBig_FoundWhileReplaced(t *testing.T) {
	c := New(64 << 20)
	defer c.Reset()
	k, stop := []byte("page"), make(chan struct{})
	var wg sync.WaitGroup
	c.SetBig(k, bytes.Repeat([]byte{1}, 200_000))
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := byte(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				c.SetBig(k, bytes.Repeat([]byte{i}, 200_000))
			}
		}
	}()
	for range 3000 {
		v := c.GetBig(nil, k)
		if !assert.Len(t, v, 200_000) || !assert.Equal(t, len(v), bytes.Count(v, v[:1])) {
			break
		}
	}
	close(stop)
	wg.Wait()
}

func TestBig_Sizes(t *testing.T) {
	c := New(256 << 20)
	defer c.Reset()
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	values := map[string][]byte{}
	const partSize = 16 << 20
	for _, n := range []int{0, 1, 7, 8, 9, 24, 1<<16 - 1, 1 << 16, 1 << 20, partSize - 1, partSize,
		partSize + 1, partSize*2 + 5} {
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(r.Uint32())
		}
		k := []byte{byte(len(values))}
		values[string(k)] = v
		c.SetBig(k, v)
		if n == 0 {
			require.Nil(t, c.GetBig(nil, k))
			continue
		}
		require.True(t, bytes.Equal(v, c.GetBig(nil, k)), "%d bytes", n)
		require.True(t, bytes.Equal(append([]byte("dst"), v...), c.GetBig([]byte("dst"), k)))
	}
	var s Stats
	c.UpdateStats(&s)
	require.Zero(t, s.InvalidMetavalueErrors+s.InvalidValueLenErrors+s.InvalidValueHashErrors)
	require.EqualValues(t, len(values), s.SetBigCalls)
}

func TestBig_OverwriteAndDel(t *testing.T) {
	c := New(1)
	defer c.Reset()
	k := []byte("k")
	long := bytes.Repeat([]byte("long"), 1<<20) // in parts
	c.SetBig(k, long)
	require.Equal(t, long, c.GetBig(nil, k))
	c.SetBig(k, []byte("short"))
	require.Equal(t, "short", string(c.GetBig(nil, k)))
	c.SetBig(k, long)
	c.Del(k)
	require.Nil(t, c.GetBig(nil, k))
	c.SetBig(k, long)
	c.Set(k, []byte("of Set"))
	require.Nil(t, c.GetBig(nil, k))
	require.Equal(t, "of Set", string(c.Get(nil, k)))
	c.SetBig(make([]byte, maxKeyLen+1), long)
	var s Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 1, s.TooBigKeyErrors)
	require.EqualValues(t, 1, s.InvalidMetavalueErrors)
}

// Values of Set that look like those of SetBig, as a stranger could choose them.
func TestGetBig_ForgedValueIsAMiss(t *testing.T) {
	c := New(1)
	defer c.Reset()
	k := []byte("k")
	huge := bytes.Repeat([]byte{0xff}, 16)
	c.Set(appendPartKey(nil, 9, 0), []byte("shorter than a first part"))
	for _, v := range [][]byte{huge, append(huge, partsTrailer...),
		append(make([]byte, 16), partsTrailer...), // no parts, no bytes
		append([]byte{0, 0, 0, 0, 0, 16, 0, 0, 15: 7}, partsTrailer...),
		append([]byte{7: 100, 15: 9}, partsTrailer...)} {
		c.Set(k, v)
		require.Nil(t, c.GetBig(nil, k), "%q", v)
		require.Equal(t, "dst", string(c.GetBig([]byte("dst"), k)))
	}
}

// Also at once in a cache that is full of small entries, as fastcache keeps them.
func TestBig_FoundInAFullCache(t *testing.T) {
	c := New(64 << 20)
	defer c.Reset()
	for i := range 64 << 20 / 80 {
		c.Set(binary.LittleEndian.AppendUint64(nil, uint64(i)), make([]byte, 100))
	}
	found := 0
	for i := range 10 {
		c.SetBig([]byte{byte(i)}, make([]byte, 2<<20))
		if c.GetBig(nil, []byte{byte(i)}) != nil {
			found++
		}
	}
	require.GreaterOrEqual(t, found, 9)
}

func TestGetBig_LostPartIsAMiss(t *testing.T) {
	c := New(1)
	defer c.Reset()
	k, long := []byte("k"), bytes.Repeat([]byte("long"), 1<<20)
	for i := range 2 {
		c.SetBig(k, long)
		c.Del(appendPartKey(nil, c.big.lastNumber.Load(), i))
		require.Nil(t, c.GetBig(nil, k), "without part %d", i)
	}
}
