package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	groups = []string{"one", "two", "three <3>"}
	series = []Series{
		{"ringcache", []Value{Single(10), {20, 15, 40}, Single(30)}},
		{"theirs", []Value{Single(9), None, Single(33)}},
	}
)

func TestBars(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	require.NoError(t, Bars(file, "Bars", "%", Linear, true, groups, series))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, want := range []string{"<svg", "three &lt;3&gt;", accent, ink, grey, "theirs"} {
		require.Contains(t, string(first), want)
	}
	wellFormed(t, string(first))
	require.NoError(t, Bars(file, "Bars", "%", Linear, true, groups, series))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(first), string(again), "the same figures give the same file")
	absent := filepath.Join(t.TempDir(), "absent", "x.svg")
	require.Error(t, Bars(absent, "", "", Linear, true, groups, series))
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// The best bar is on top; what is missing has none.
func TestSorted(t *testing.T) {
	require.Equal(t, []bar{{"theirs", Single(9)}, {"ringcache", Single(10)}}, sorted(series, 0, false))
	require.Equal(t, []bar{{"ringcache", Single(10)}, {"theirs", Single(9)}}, sorted(series, 0, true))
	require.Equal(t, []bar{{"ringcache", Value{20, 15, 40}}}, sorted(series, 1, true))
}

// A logarithmic axis begins at a tenth of the least figure; equal ratios are equally far apart.
func TestAxis(t *testing.T) {
	linear, log := newAxis(Linear, series), newAxis(Log, series)
	require.Equal(t, axis{Linear, 9, 40}, linear)
	require.InDelta(t, barRight, linear.x(40), 1e-9)
	require.InDelta(t, barLeft, linear.x(0), 1e-9)
	require.InDelta(t, barRight, log.x(40), 1e-9)
	require.InDelta(t, barLeft, log.x(0.9), 1e-9)
	require.InDelta(t, log.x(20)-log.x(10), log.x(40)-log.x(20), 1e-9)
}

func TestBarsOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	none := []Series{{"ringcache", []Value{None}}, {"theirs", []Value{Single(0)}}}
	require.NoError(t, Bars(file, "", "", Log, false, []string{"one"}, none))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "NaN")
}
