package ringcache_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/s2"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// New panics with the error of NewWithOptions.
func TestNew_PanicsWhereOptionsAreRefused(t *testing.T) {
	for _, n := range []int{math.MinInt, -1, 0, 1, 256<<10 - 1} {
		_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: n})
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
		require.PanicsWithError(t, err.Error(), func() { ringcache.New(n) }, "New(%d)", n)
	}
}

// A setting that cannot be intended is an error that names the setting and its bound.
func TestOptions_WhatCannotBeMeantIsRefused(t *testing.T) {
	const size = 256 << 10
	const ticks = ", must be 0 or at least a tick of 100ms (60 seconds are 60 * time.Second)"
	bytes := func(n int) string {
		return "MaxBytes is " + strconv.Itoa(n) + " bytes, must be from 262144 to 4398046511104 " +
			"(256 MB are 256 << 20)"
	}
	for want, o := range map[string]ringcache.Options{
		bytes(256):            {MaxBytes: 256},
		bytes(0):              {},
		bytes(-1):             {MaxBytes: -1},
		bytes(size - 1):       {MaxBytes: size - 1},
		"TTL is 60ns" + ticks: {MaxBytes: size, TTL: 60},
		"TTL is -1ns" + ticks: {MaxBytes: size, TTL: -1},
		"TTL is 99.999999ms" + ticks: {
			MaxBytes: size, TTL: 100*time.Millisecond - 1},
		"RefreshAhead is 5ns" + ticks:  {MaxBytes: size, RefreshAhead: 5},
		"RefreshAhead is -1ns" + ticks: {MaxBytes: size, RefreshAhead: -1},
		"RefreshAhead is 1m0s, must be below TTL of 1m0s": {
			MaxBytes: size, TTL: time.Minute, RefreshAhead: time.Minute},
		"TTLJitter is -0.1, must be at least 0 and below 1": {MaxBytes: size, TTLJitter: -0.1},
		"TTLJitter is 1, must be at least 0 and below 1":    {MaxBytes: size, TTLJitter: 1},
		"TTLJitter is NaN, must be at least 0 and below 1":  {MaxBytes: size, TTLJitter: math.NaN()},
		"TTLJitter is +Inf": {MaxBytes: size, TTLJitter: math.Inf(1)},
		"RefreshAhead is 30s, must be below TTL of 1m0s less TTLJitter, 30s": {
			MaxBytes: size, TTL: time.Minute, TTLJitter: 0.5, RefreshAhead: 30 * time.Second},
		"ExpireAfterAccess is 60ns" + ticks: {MaxBytes: size, ExpireAfterAccess: 60},
		"ExpireAfterAccess is -1ns" + ticks: {MaxBytes: size, ExpireAfterAccess: -1},
		"RefreshAhead is 30s, must be below half of ExpireAfterAccess of 1m0s": {
			MaxBytes: size, ExpireAfterAccess: time.Minute, RefreshAhead: 30 * time.Second},
		"StaleIfError is 60ns" + ticks:         {MaxBytes: size, StaleIfError: 60},
		"StaleIfError is -1ns" + ticks:         {MaxBytes: size, StaleIfError: -1},
		"ExpectedEntries is -1":                {MaxBytes: size, ExpectedEntries: -1},
		"Policy is 7, must be S3-FIFO or FIFO": {MaxBytes: size, Policy: 7},
	} {
		_, err := ringcache.NewWithOptions(o)
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions, want)
		require.ErrorContains(t, err, "ringcache: check options: "+want)
	}
	c, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: size, TTL: 200 * time.Millisecond, RefreshAhead: 100 * time.Millisecond,
		StaleIfError: 100 * time.Millisecond})
	require.NoError(t, err, "the least that may be")
	ringtest.CloseCache(t, c)
	c, err = ringcache.NewWithOptions(ringcache.Options{MaxBytes: size, TTL: time.Minute,
		TTLJitter: 0.99, StaleIfError: math.MaxInt64, ExpireAfterAccess: math.MaxInt64})
	require.NoError(t, err, "the most that may be")
	ringtest.CloseCache(t, c)
}

// Options returns every field as it was given, except for the bound, a default and the path.
func TestOptions_AreReturned(t *testing.T) {
	given := ringcache.Options{
		MaxBytes: 64 << 20, Policy: ringcache.PolicyFIFO, TTL: time.Hour, TTLJitter: 0.25,
		RefreshAhead: time.Minute, StaleIfError: time.Second, HugePages: ringcache.HugePagesOff,
		OnRemove: func(ringcache.Removal) {}, File: "entries", Version: 7,
		Compressor: s2.New(), ExpectedEntries: 1000, ExpireAfterAccess: 30 * time.Minute,
	}
	t.Chdir(t.TempDir())
	c, err := ringcache.NewWithOptions(given)
	if errors.Is(err, errors.ErrUnsupported) {
		given.File = ""
		c, err = ringcache.NewWithOptions(given)
	}
	require.NoError(t, err)
	defer ringtest.CloseCache(t, c)
	require.NoError(t, c.Resize(48<<20))

	got := c.Options()
	require.NotNil(t, got.OnRemove)
	require.Equal(t, 30*time.Second, got.RefreshTimeout)
	require.Equal(t, given.File != "", filepath.IsAbs(got.File))
	require.Equal(t, filepath.Base(given.File), filepath.Base(got.File))
	want := given
	want.MaxBytes, want.RefreshTimeout, want.SoftTimeout = 48<<20, 30*time.Second, 30*time.Second
	got.File, got.OnRemove, want.File, want.OnRemove = "", nil, "", nil
	require.Equal(t, want, got)

	fields := reflect.ValueOf(given)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		isSet := !fields.Field(i).IsZero() || strings.HasSuffix(name, "Timeout") || name == "File"
		require.True(t, isSet, "%s is not tried", name)
	}
}

// All calls with a bound follow one rule.
func TestMaxBytes_OneRule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, ringtest.Small(t).SaveToFile(path))
	resized, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 256 << 10})
	require.NoError(t, err)
	defer ringtest.CloseCache(t, resized)
	for name, bounded := range map[string]func(maxBytes int) (*ringcache.Cache, error){
		"NewWithOptions": func(n int) (*ringcache.Cache, error) {
			return ringcache.NewWithOptions(ringcache.Options{MaxBytes: n})
		},
		"New": func(n int) (c *ringcache.Cache, err error) {
			defer func() {
				if v := recover(); v != nil {
					err = v.(error)
				}
			}()
			return ringcache.New(n), nil
		},
		"Load": func(n int) (*ringcache.Cache, error) {
			c, _, err := ringcache.Load(path, ringcache.Options{MaxBytes: n})
			return c, err
		},
		"Resize": func(n int) (*ringcache.Cache, error) { return resized, resized.Resize(n) },
	} {
		for _, n := range []int{math.MinInt, -1, 0, 256, 256<<10 - 1} {
			_, err := bounded(n)
			require.ErrorIs(t, err, ringcache.ErrInvalidOptions, "%s of %d", name, n)
			require.ErrorContains(t, err, fmt.Sprintf("MaxBytes is %d bytes, must be from 262144 to ", n))
		}
		if uint64(math.MaxInt) > 1<<42 {
			_, err := bounded(math.MaxInt)
			require.ErrorIs(t, err, ringcache.ErrInvalidOptions, name)
		}
		for _, n := range []int{256 << 10, 1<<20 + 1, ringtest.MinBytes - 1, ringtest.MinBytes + 1} {
			c, err := bounded(n)
			require.NoError(t, err, "%s of %d", name, n)
			require.EqualValues(t, n, ringtest.StatsOf(c).MaxBytesSize, "%s of %d", name, n)
			if c != resized {
				ringtest.CloseCache(t, c)
			}
		}
	}
}
