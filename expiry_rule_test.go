package ringcache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/clock"
)

// One rule for every TTL: the section Times to live of the package.

// timedCall is a call that stores a value for a TTL.
type timedCall struct {
	name    string
	replace bool // it replaces an older value
	do      func(c *Cache, k []byte, ttl time.Duration) error
	has     func(c *Cache, k []byte) (time.Duration, bool)
}

// timedCalls are all calls with a TTL that store a value.
func timedCalls() []timedCall {
	v := []byte("value")
	keep := func([]byte, bool) ([]byte, bool) { return v, true }
	view := func(c *Cache) *Typed[string, []byte] {
		return NewTyped[string](c, codec.Bytes[[]byte](), TypedOptions{})
	}
	plain := (*Cache).TTL
	inSpace := func(c *Cache, k []byte) (time.Duration, bool) { return c.Namespace("n").TTL(k) }
	return []timedCall{
		{"SetWithTTL", true, func(c *Cache, k []byte, ttl time.Duration) error {
			return c.SetWithTTL(k, v, ttl)
		}, plain},
		{"SetBatchWithTTL", true, func(c *Cache, k []byte, ttl time.Duration) error {
			return c.SetBatchWithTTL([][]byte{k, []byte("another")}, [][]byte{v, v}, ttl)
		}, plain},
		{"SetIfAbsentWithTTL", false, func(c *Cache, k []byte, ttl time.Duration) error {
			_, _, err := c.SetIfAbsentWithTTL(nil, k, v, ttl)
			return err
		}, plain},
		{"UpdateWithTTL", false, func(c *Cache, k []byte, ttl time.Duration) error {
			return c.UpdateWithTTL(k, ttl, keep)
		}, plain},
		{"Namespace.SetWithTTL", true, func(c *Cache, k []byte, ttl time.Duration) error {
			return c.Namespace("n").SetWithTTL(k, v, ttl)
		}, inSpace},
		{"Namespace.SetBatchWithTTL", true, func(c *Cache, k []byte, ttl time.Duration) error {
			return c.Namespace("n").SetBatchWithTTL([][]byte{k}, [][]byte{v}, ttl)
		}, inSpace},
		{"Namespace.SetIfAbsentWithTTL", false, func(c *Cache, k []byte, ttl time.Duration) error {
			_, _, err := c.Namespace("n").SetIfAbsentWithTTL(nil, k, v, ttl)
			return err
		}, inSpace},
		{"Namespace.UpdateWithTTL", false, func(c *Cache, k []byte, ttl time.Duration) error {
			return c.Namespace("n").UpdateWithTTL(k, ttl, keep)
		}, inSpace},
		{"Typed.SetWithTTL", true, func(c *Cache, k []byte, ttl time.Duration) error {
			return view(c).SetWithTTL(string(k), v, ttl)
		}, plain},
		{"Typed.SetBatchWithTTL", true, func(c *Cache, k []byte, ttl time.Duration) error {
			return view(c).SetBatchWithTTL([]string{string(k)}, [][]byte{v}, ttl)
		}, plain},
		{"Typed.SetIfAbsentWithTTL", false, func(c *Cache, k []byte, ttl time.Duration) error {
			_, _, err := view(c).SetIfAbsentWithTTL(string(k), v, ttl)
			return err
		}, plain},
		{"Typed.UpdateWithTTL", false, func(c *Cache, k []byte, ttl time.Duration) error {
			return view(c).UpdateWithTTL(string(k), ttl, keep)
		}, plain},
	}
}

func TestTimesToLive_OneRule(t *testing.T) {
	k := []byte("key")
	for _, tt := range []struct {
		ttl, left time.Duration
		there     bool
	}{
		{0, 0, true},
		{clock.Tick, clock.Tick, true},
		{time.Hour, time.Hour, true},
		{14 * 365 * 24 * time.Hour, 0, true},
		{math.MaxInt64, 0, true},
		{1, 0, false},
		{clock.Tick - 1, 0, false},
		{-1, 0, false},
		{math.MinInt64, 0, false},
	} {
		for _, call := range timedCalls() {
			what := fmt.Sprintf("%s of %v", call.name, tt.ttl)
			g := tiny(2, 1024, 64)
			g.ttl = time.Minute
			c, _ := timedCache(t, g)
			if call.replace {
				require.NoError(t, call.do(c, k, time.Minute))
			}
			err := call.do(c, k, tt.ttl)
			assert.Equal(t, isBrief(tt.ttl), errors.Is(err, ErrTTLTooShort), "%s: %v", what, err)
			assert.True(t, err == nil || isBrief(tt.ttl), "%s: %v", what, err)
			left, ok := call.has(c, k)
			assert.Equal(t, tt.there, ok, what)
			assert.Equal(t, tt.left, left, what)
			if !tt.there {
				assert.Zero(t, c.Len(), what)
			}
		}
		// Touch, which has no error, and loads, whose TTL of 0 is Options.TTL.
		c, _ := timedCache(t, tiny(2, 1024, 64))
		require.NoError(t, c.Set(k, k))
		assert.True(t, c.Touch(k, tt.ttl), "Touch for %v: it was there", tt.ttl)
		left, ok := c.TTL(k)
		assert.Equal(t, tt.there, ok, "Touch for %v", tt.ttl)
		assert.Equal(t, tt.left, left, "Touch for %v", tt.ttl)
		assert.False(t, c.Touch([]byte("none"), tt.ttl))

		c.Del(k)
		load := func(context.Context, []byte) ([]byte, time.Duration, error) {
			return k, tt.ttl, nil
		}
		v, err := c.GetOrLoad(t.Context(), nil, k, load)
		require.NoError(t, err)
		require.Equal(t, string(k), string(v), "it goes to those who wait")
		left, ok = c.TTL(k)
		assert.Equal(t, tt.there, ok, "load for %v", tt.ttl)
		assert.Equal(t, tt.left, left, "load for %v", tt.ttl)
	}
}

func TestTimesToLive_OfOptions(t *testing.T) {
	for _, ttl := range []time.Duration{-1, math.MinInt64, 1, 60, clock.Tick - 1} {
		for _, o := range []Options{{TTL: ttl}, {RefreshAhead: ttl}, {StaleIfError: ttl}} {
			o.MaxBytes = minMaxBytes
			_, err := NewWithOptions(o)
			require.ErrorIs(t, err, ErrInvalidOptions, "%+v", o)
		}
	}
}

// A batch reports the first entry that is refused, and tries all.
func TestSetBatchWithTTL_TriesAll(t *testing.T) {
	c, _ := timedCache(t, tiny(2, 1024, 64))
	keys, vals := make([][]byte, 100), make([][]byte, 100)
	for i := range keys {
		keys[i], vals[i] = idKey(i), idKey(i)
	}
	vals[40] = make([]byte, c.shared.maxValue()+1)
	err := c.SetBatchWithTTL(keys, vals, time.Minute)
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, "index 40:")
	require.Equal(t, 99, c.Len())
	left, ok := c.TTL(keys[99])
	require.True(t, ok)
	require.Equal(t, time.Minute, left)
	err = c.SetBatchWithTTL(keys, vals, 1)
	require.ErrorIs(t, err, ErrTTLTooShort)
	require.ErrorContains(t, err, "index 0:")
	require.Zero(t, c.Len())
}
