package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/compress/s2"
)

// A small run prints all tables, and finds cold entries in each, but none without a compressor.
func TestRun(t *testing.T) {
	if _, err := payload.New("json"); err != nil {
		t.Skip(err) // a machine with few files
	}
	var out, errs bytes.Buffer
	args := []string{"-payload", "json", "-mb", "64", "-turns", "3", "-rounds", "1"}
	require.NoError(t, run(t.Context(), args, &out, &errs))
	tables := strings.Split(out.String(), "| entries |")[1:]
	require.Len(t, tables, len(measurements))
	for i, table := range tables {
		name := measurements[i].name
		require.Regexp(t, `\| cold hits, % of old Gets \|  \| [1-9]\d* \|  \|`, table, name)
		require.Regexp(t, `\| Set p99.9, ns \| \d+ \| \d+ \| \d+\.\d\d \|`, table, name)
		require.Regexp(t, `\| hot Get p50, ns \| \d+ \| \d+ \| \d+\.\d\d \|`, table, name)
	}
	t.Log(out.String())
}

func TestRun_Refuses(t *testing.T) {
	var out bytes.Buffer
	require.ErrorContains(t, run(t.Context(), []string{"-mb", "1"}, &out, &out), "-mb")
	require.ErrorContains(t, run(t.Context(), []string{"-payload", "xml"}, &out, &out), "xml")
}

// The ratio that is shown is the median of those of the rounds, not that of the medians.
func TestRatios_AreOfTheRounds(t *testing.T) {
	off := []figures{{"a": 1}, {"a": 2}, {"a": 10}}
	on := []figures{{"a": 3}, {"a": 8}, {"a": 10}}
	require.Equal(t, 3.0, median(ratios(on, off, "a"), "a"))
	require.Zero(t, median(ratios(on, off, "b"), "b"))
}

func TestSlowed_CompressesAsItsCompressorDoes(t *testing.T) {
	const by = time.Millisecond
	v, err := slowed{s2.New(), by}.WithDict(nil)
	require.NoError(t, err)
	src := bytes.Repeat([]byte("value "), 100)
	begin := time.Now()
	packed, err := v.Compress(nil, src)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), by)
	require.Less(t, len(packed), len(src))
	got, err := v.Decompress(nil, packed, len(src))
	require.NoError(t, err)
	require.Equal(t, src, got)
}
