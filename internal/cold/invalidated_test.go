package cold_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// hooked is FlateCompressor, but the next Decompress calls before first, if that is not nil.
type hooked struct {
	ringtest.FlateCompressor
	before func()
}

func (h *hooked) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	v, err := h.FlateCompressor.WithDict(dict)
	return &hookedValues{v, h}, err
}

type hookedValues struct {
	ringcache.ValueCompressor
	h *hooked
}

func (v *hookedValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	if before := v.h.before; before != nil {
		v.h.before = nil
		before()
	}
	return v.ValueCompressor.Decompress(dst, src, size)
}

// An entry whose namespace is invalidated while its value is unpacked does not go back to main,
// where the walk that drops such entries may have been already. A removal that needs its value
// ends.
func TestColdPart_InvalidatedWhileUnpacked(t *testing.T) {
	for name, call := range map[string]func(space *ringcache.Cache, k []byte){
		"lookup":  func(space *ringcache.Cache, k []byte) { space.HasGet(nil, k) },
		"removal": func(space *ringcache.Cache, k []byte) { space.GetAndDel(nil, k) },
	} {
		t.Run(name, func(t *testing.T) { invalidateWhileUnpacked(t, call) })
	}
}

func invalidateWhileUnpacked(t *testing.T, call func(space *ringcache.Cache, k []byte)) {
	by := &hooked{}
	g := ringtest.WithCold(ringtest.Tiny(2, 1024, 256), by)
	g.ByHand = true
	c := ringtest.MustCache(t, g)
	space := c.Namespace("space")
	bucketOf := func(of *ringcache.Cache, k []byte) *store.Store {
		_, h := ringtest.KeyOf(of, k)
		return ringtest.BucketOf(c, h).Store
	}
	key := []byte("key")
	own := bucketOf(space, key)
	entries := 0
	set := func(n int) {
		for id := entries * 1000; n > 0; id++ {
			if k := fmt.Append(nil, id); bucketOf(c, k) == own {
				n--
				entries++
				require.NoError(t, c.Set(k, ringtest.Text(id, 300)))
			}
		}
	}
	set(40)
	require.NoError(t, space.Set(key, ringtest.PackedValue))
	require.NotZero(t, ringtest.SinkAll(c))
	kind, in := ringtest.Stored(space, key)
	require.Equal(t, [2]any{record.Packed, policy.Cold}, [2]any{kind, in})

	require.True(t, space.Has(key))
	by.before = func() {
		space.Reset()
		set(1) // the walk passes main, and comes to the first records of the cold ring
	}
	call(space, key)
	require.Nil(t, by.before, "nothing was unpacked")
	set(20)
	require.Equal(t, entries, c.Len(), "the invalidated entry stays")
}
