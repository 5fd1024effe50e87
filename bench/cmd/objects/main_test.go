package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/objects"
)

func TestTable(t *testing.T) {
	all := results{}
	for i, name := range objects.StoreNames {
		f := float64(100 * (i + 1))
		all[name] = map[string][]float64{objects.HotNS: {f, f + 1, f + 2}, objects.HitRatio: {100}}
	}
	var b bytes.Buffer
	table(&b, objects.Values{Kind: "json", Bytes: 300, Entries: 4000}, all)
	require.Regexp(t, `\| Get, 1,024 hot keys, ns \| \S+ \(\S+\) \*\*\S+\*\* \| `, b.String())
	require.Contains(t, b.String(), "100 (100-100)")
}

func TestParse(t *testing.T) {
	loads, err := parse(defaultLoads)
	require.NoError(t, err)
	require.Len(t, loads, 5)
	require.Equal(t, objects.Values{Kind: "json", Bytes: 1000, Entries: 1_000_000}, loads[0])
	for _, list := range []string{"", "json:1000", "xml:1000:10000", "json:10:10000", "json:300:1"} {
		_, err := parse(list)
		require.ErrorContains(t, err, "-loads", list)
	}
	var out bytes.Buffer
	require.Error(t, run(t.Context(), []string{"-rounds=0"}, &out, io.Discard))
	require.Empty(t, out.String())
}
