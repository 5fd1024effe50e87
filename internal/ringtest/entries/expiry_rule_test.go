package entries

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// One rule for every TTL: the section Times to live of the package.

// timedCalls are all calls with a TTL that store a value.
var timedCalls = []struct {
	name    string
	replace bool // it replaces an older value
	do      func(s ringtest.Calls, k, v []byte, ttl time.Duration) error
}{
	{"SetWithTTL", true, func(s ringtest.Calls, k, v []byte, ttl time.Duration) error {
		return s.SetWithTTL(k, v, ttl)
	}},
	{"SetBatchWithTTL", true, func(s ringtest.Calls, k, v []byte, ttl time.Duration) error {
		return s.SetBatchWithTTL([][]byte{k, []byte("another")}, [][]byte{v, v}, ttl)
	}},
	{"SetIfAbsent", false, func(s ringtest.Calls, k, v []byte, ttl time.Duration) error {
		_, _, err := s.SetIfAbsent(nil, k, v, ttl)
		return err
	}},
	{"Update", true, func(s ringtest.Calls, k, v []byte, ttl time.Duration) error {
		return s.Update(k, func(e *ringtest.Entry) { e.SetWithTTL(v, ttl) })
	}},
	{"Update, new", false, func(s ringtest.Calls, k, v []byte, ttl time.Duration) error {
		return s.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) { return v, true }, ttl))
	}},
}

// ttlRule is what becomes of a TTL.
type ttlRule struct {
	ttl, left time.Duration
	there     bool
}

// ttlRules are of a cache whose Options.TTL, if any, makes no difference.
var ttlRules = []ttlRule{
	{0, 0, true},
	{clock.Tick, clock.Tick, true},
	{time.Hour, time.Hour, true},
	{14 * 365 * 24 * time.Hour, 0, true},
	{math.MaxInt64, 0, true},
	{1, 0, false},
	{clock.Tick - 1, 0, false},
	{-1, 0, false},
	{math.MinInt64, 0, false},
}

// check fails unless the entry of k is as the rule says.
func (r ttlRule) check(t *testing.T, s ringtest.Calls, k []byte, what string) {
	t.Helper()
	left, ok := s.TTL(k)
	assert.Equal(t, r.there, ok, what)
	assert.Equal(t, r.left, left, what)
}

func TestTimesToLive_OneRule(t *testing.T) {
	k, v := []byte("key"), []byte("value")
	for _, view := range ringtest.Views {
		for _, r := range ttlRules {
			for _, call := range timedCalls {
				what := fmt.Sprintf("%s of %s for %v", call.name, view.Name, r.ttl)
				g := ringtest.Tiny(2, 1024, 64)
				g.TTL = time.Minute
				c, _ := ringtest.TimedCache(t, g)
				s := view.Of(c)
				if call.replace {
					require.NoError(t, call.do(s, k, v, time.Minute))
				}
				err := call.do(s, k, v, r.ttl)
				assert.Equal(t, ringtest.IsBrief(r.ttl), errors.Is(err, ringcache.ErrTTLTooShort), "%s: %v",
					what, err)
				assert.True(t, err == nil || ringtest.IsBrief(r.ttl), "%s: %v", what, err)
				r.check(t, s, k, what)
				if !r.there {
					assert.Zero(t, c.Len(), what)
				}
			}
			r.ofTouchAndLoads(t, view.Of, view.Name)
		}
	}
}

// ofTouchAndLoads is the rule for Touch, which has no error, and for loads, whose results go to
// those who wait, and whose TTL of 0 is Options.TTL.
func (r ttlRule) ofTouchAndLoads(
	t *testing.T, of func(c *ringcache.Cache) ringtest.Calls, name string,
) {
	t.Helper()
	c, _ := ringtest.TimedCache(t, ringtest.Tiny(2, 1024, 64))
	s, k := of(c), []byte("key")
	what := fmt.Sprintf("of %s for %v", name, r.ttl)
	require.NoError(t, s.Set(k, k))
	assert.True(t, s.Touch(k, r.ttl), "Touch %s: it was there", what)
	r.check(t, s, k, "Touch "+what)
	assert.False(t, s.Touch([]byte("none"), r.ttl))

	s.Del(k)
	v, err := s.GetOrLoad(t.Context(), nil, k,
		func(context.Context, []byte) ([]byte, time.Duration, error) { return k, r.ttl, nil })
	require.NoError(t, err)
	require.Equal(t, string(k), string(v), "it goes to those who wait")
	r.check(t, s, k, "GetOrLoad "+what)

	s.Del(k)
	v, hits, err := s.GetOrLoadBatch(t.Context(), nil, [][]byte{k}, make([][]byte, 1),
		func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
			return []ringtest.Loaded{{Value: k, TTL: r.ttl}}, nil
		})
	require.NoError(t, err)
	require.Zero(t, hits)
	require.Equal(t, string(k), string(v))
	r.check(t, s, k, "GetOrLoadBatch "+what)
}

func TestTimesToLive_OfOptions(t *testing.T) {
	for _, ttl := range []time.Duration{-1, math.MinInt64, 1, 60, clock.Tick - 1} {
		for _, o := range []ringcache.Options{{TTL: ttl}, {RefreshAhead: ttl}, {StaleIfError: ttl}} {
			o.MaxBytes = ringtest.MinBytes
			_, err := ringcache.NewWithOptions(o)
			require.ErrorIs(t, err, ringcache.ErrInvalidOptions, "%+v", o)
		}
	}
}

// A batch reports the first entry that is refused, and tries all.
func TestSetBatchWithTTL_TriesAll(t *testing.T) {
	c, _ := ringtest.TimedCache(t, ringtest.Tiny(2, 1024, 64))
	keys, vals := make([][]byte, 100), make([][]byte, 100)
	for i := range keys {
		keys[i], vals[i] = ringtest.IDKey(i), ringtest.IDKey(i)
	}
	vals[40] = make([]byte, ringtest.Shared(c).MaxValue()+1)
	err := c.SetBatchWithTTL(keys, vals, time.Minute)
	require.ErrorIs(t, err, ringcache.ErrTooLarge)
	require.ErrorContains(t, err, "index 40:")
	require.Equal(t, 99, c.Len())
	left, ok := c.TTL(keys[99])
	require.True(t, ok)
	require.Equal(t, time.Minute, left)
	err = c.SetBatchWithTTL(keys, vals, 1)
	require.ErrorIs(t, err, ringcache.ErrTTLTooShort)
	require.ErrorContains(t, err, "index 0:")
	require.Zero(t, c.Len())
}
