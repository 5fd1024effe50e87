package room

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// snake returns the name of a field as log lines spell it.
func snake(name string) string {
	var b strings.Builder
	for i, r := range strings.Replace(name, "TTL", "Ttl", 1) {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// eachField calls fn with every field of a Stats whose fields all differ, nested ones by the
// names that lead to them: Policy.GhostHits. fn may change the field: each call has its own Stats.
func eachField(t *testing.T, fn func(name string, s *ringcache.Stats, field reflect.Value)) {
	t.Helper()
	var all ringcache.Stats
	v := reflect.ValueOf(&all).Elem()
	n := 0
	walkFields(v, "", func(_ string, field reflect.Value) {
		setNumber(field, uint64(1000-n))
		n++
	})
	require.Greater(t, n, v.NumField(), "those of nested structs too")
	for i := range n {
		s, at := all, 0
		walkFields(reflect.ValueOf(&s).Elem(), "", func(name string, field reflect.Value) {
			if at == i {
				fn(name, &s, field)
			}
			at++
		})
	}
}

// walkFields calls fn with every number in a struct and in those nested in it, by the names that
// lead to it: Policy.GhostHits.
func walkFields(v reflect.Value, path string, fn func(name string, field reflect.Value)) {
	for i := range v.NumField() {
		name := path + v.Type().Field(i).Name
		if v.Field(i).Kind() == reflect.Struct {
			walkFields(v.Field(i), name+".", fn)
		} else {
			fn(name, v.Field(i))
		}
	}
}

// setNumber sets a counter, a gauge or a duration.
func setNumber(field reflect.Value, n uint64) {
	if field.CanInt() {
		field.SetInt(int64(n))
	} else {
		field.SetUint(n)
	}
}

func number(field reflect.Value) uint64 {
	if field.CanInt() {
		return uint64(field.Int())
	}
	return field.Uint()
}

func TestStats_CountCalls(t *testing.T) {
	c := ringtest.Small(t)
	fresh := ringcache.Stats{MaxBytesSize: ringtest.MinBytes, EffectiveMaxBytes: ringtest.MinBytes}
	require.Equal(t, fresh, ringtest.StatsOf(c), "a fresh cache")

	a, b, none := []byte("a"), []byte("bb"), []byte("none")
	require.NoError(t, c.Set(a, make([]byte, 10)))  // 3 + 1 + 10 bytes of record
	require.NoError(t, c.Set(b, make([]byte, 100))) // 3 + 2 + 100
	require.NoError(t, c.Set(a, make([]byte, 20)))  // 3 + 1 + 20 instead of the first
	require.Error(t, c.Set(none, make([]byte, ringtest.MaxValue+1)))
	c.Get(nil, a)
	c.Get(nil, none)
	c.HasGet(nil, b)
	c.Has(a)
	c.Has(none)
	c.GetBatch(nil, [][]byte{a, none, a, b}, make([][]byte, 4))

	s := ringtest.StatsOf(c)
	require.Equal(t, uint64(4), s.SetCalls, "refused ones among them")
	require.Equal(t, uint64(1), s.Refused.TooLarge)
	require.Equal(t, uint64(9), s.GetCalls, "one for each key looked up")
	require.Equal(t, uint64(3), s.Misses)
	require.Equal(t, uint64(2), s.EntriesCount)
	require.Equal(t, uint64(24+105), s.BytesSize)
	require.Zero(t, s.DelCalls+s.Collisions+s.Corruptions+s.EvictedEntries+s.EvictedBytes)
	require.GreaterOrEqual(t, s.ReservedBytes, s.BytesSize+s.IndexBytes)
	require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
	require.NotZero(t, s.IndexBytes)

	c.Del(b)
	c.Del(none)
	s = ringtest.StatsOf(c)
	require.Equal(t, uint64(2), s.DelCalls)
	require.Equal(t, uint64(1), s.EntriesCount)
	require.Equal(t, uint64(24), s.BytesSize)
	require.Zero(t, s.EvictedEntries, "a deleted entry is not evicted")

	twice := s
	c.UpdateStats(&twice) // adds
	require.Equal(t, 2*s.GetCalls, twice.GetCalls)
	require.Equal(t, 2*s.MaxBytesSize, twice.MaxBytesSize)

	c.Reset()
	after := ringtest.StatsOf(c)
	require.Equal(t, s.GetCalls, after.GetCalls, "Reset leaves the counters")
	require.Equal(t, s.SetCalls, after.SetCalls)
	require.Zero(t, after.EntriesCount+after.BytesSize+after.EvictedEntries)
}

// Values that are not stored are counted by their error, of loads too.
func TestStats_Refused(t *testing.T) {
	c := ringtest.Small(t)
	k, long := []byte("k"), make([]byte, ringtest.MaxValue+1)
	require.ErrorIs(t, c.Set(k, long), ringcache.ErrTooLarge)
	require.ErrorIs(t, c.SetBatch([][]byte{k, make([]byte, 1<<16)}, [][]byte{long, nil}),
		ringcache.ErrTooLarge)
	_, err := c.GetOrLoad(context.Background(), nil, k,
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			return long, 0, nil
		})
	require.NoError(t, err)
	require.ErrorIs(t, c.SetWithTTL(k, nil, 1), ringcache.ErrTTLTooShort)
	require.NoError(t, c.Set(k, nil))
	_, err = ringtest.SetIfAbsent(c, k, nil)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Set(k, nil), ringcache.ErrClosed)
	require.ErrorIs(t, c.Update(k, ringtest.Append(nil)), ringcache.ErrClosed)
	s := ringtest.StatsOf(c)
	require.Equal(t, ringcache.RefusedStats{TooLarge: 4, TTLTooShort: 1}, s.Refused)
}

// What went in is either still there or was evicted, to the entry and to the
// byte.
func TestStats_WhatIsNotThereWasEvicted(t *testing.T) {
	c := ringtest.Small(t)
	const n, size = 200_000, 300
	for i := range n {
		require.NoError(t, c.Set([]byte(fmt.Sprintf("%08d", i)), make([]byte, size)))
	}
	s := ringtest.StatsOf(c)
	require.NotZero(t, s.EvictedEntries)
	require.Equal(t, uint64(n), s.EntriesCount+s.EvictedEntries)
	require.Equal(t, uint64(n*(3+8+size)), s.BytesSize+s.EvictedBytes)
	require.Equal(t, int(s.EntriesCount), c.Len())
	live := 0
	for i := range n {
		if c.Has([]byte(fmt.Sprintf("%08d", i))) {
			live++
		}
	}
	require.Equal(t, c.Len(), live)
}

func TestStats_HitRatio(t *testing.T) {
	for _, tt := range []struct {
		gets, misses uint64
		want         float64
	}{
		{0, 0, 0},
		{1, 0, 1},
		{1, 1, 0},
		{4, 1, 0.75},
		{3, 2, 1.0 / 3},
		{5, 6, 0}, // a lookup came between the reading of the two
		{0, 1, 0},
		{math.MaxUint64, 0, 1},
	} {
		s := ringcache.Stats{GetCalls: tt.gets, Misses: tt.misses}
		require.Equal(t, tt.want, s.HitRatio(), "%d gets, %d misses", tt.gets, tt.misses)
	}
}

func TestStats_StringSaysEveryField(t *testing.T) {
	eachField(t, func(name string, s *ringcache.Stats, field reflect.Value) {
		before := s.String()
		require.NotContains(t, before, "\n")
		setNumber(field, number(field)+5000)
		require.NotEqual(t, before, s.String(), "%s is not told", name)
	})
}

func TestStats_StringUnits(t *testing.T) {
	for n, want := range map[uint64]string{
		0:                  "0 B of ",
		1023:               "1023 B of ",
		1024:               "1.0 KB of ",
		1<<20 - 60:         "1023.9 KB of ",
		1<<20 - 1:          "1.0 MB of ",
		32 << 20:           "32.0 MB of ",
		1<<40 + 1<<39:      "1.5 TB of ",
		math.MaxUint64:     "16.0 EB of ",
		math.MaxUint64 / 3: "5.3 EB of ",
	} {
		s := ringcache.Stats{BytesSize: n}.String()
		require.Contains(t, s, " entries, "+want)
	}
	s := ringcache.Stats{GetCalls: 3, Misses: 1}.String()
	require.Contains(t, s, "3 gets, 66.7 % hits, 1 misses,")
}

// What is printed is a copy: it must not stand in the way of UpdateStats, which
// adds.
func TestStats_PrintingLeavesThem(t *testing.T) {
	c := ringtest.Small(t)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	c.Has([]byte("k"))
	s := ringtest.StatsOf(c)
	before := s
	_, _ = s.String(), s.HitRatio()
	require.Equal(t, before, s)
	c.UpdateStats(&s)
	require.Equal(t, 2*before.GetCalls, s.GetCalls)
	require.Equal(t, 2*before.EntriesCount, s.EntriesCount)
}
