package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	groups = []string{"one", "two", "three <3>"}
	series = []Series{{"ringcache", []float64{10, 20, 30}}, {"theirs", []float64{9, math.NaN(), 33}}}
)

func TestCharts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	for name, draw := range map[string]func() error{
		"bars": func() error { return Bars(file, "Bars", "%", true, groups, series) },
		"dots": func() error { return Dots(file, "Dots", "points", groups, []float64{1, -2, 3}) },
	} {
		require.NoError(t, draw(), name)
		first, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, want := range []string{"<svg", "three &lt;3&gt;", accent, ink} {
			require.Contains(t, string(first), want, name)
		}
		if name == "bars" {
			require.Contains(t, string(first), grey)
			require.Contains(t, string(first), "theirs")
		}
		wellFormed(t, string(first))
		require.NoError(t, draw(), name)
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(first), string(again), "the same figures give the same file")
	}
	require.Error(t, Bars(filepath.Join(t.TempDir(), "absent", "x.svg"), "", "", true, groups, series))
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
	require.Equal(t, []bar{{"theirs", 9}, {"ringcache", 10}}, sorted(series, 0, false))
	require.Equal(t, []bar{{"ringcache", 10}, {"theirs", 9}}, sorted(series, 0, true))
	require.Equal(t, []bar{{"ringcache", 20}}, sorted(series, 1, true))
}

func TestBarsOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	none := []Series{{"ringcache", []float64{math.NaN()}}, {"theirs", []float64{0}}}
	require.NoError(t, Bars(file, "", "", false, []string{"one"}, none))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "NaN")
}

func TestTick(t *testing.T) {
	for span, want := range map[float64]float64{1: 0.1, 16.3: 2, 60: 10, 0.3: 0.05, 99: 10} {
		require.InDelta(t, want, tick(span), want/1000, "%v", span)
	}
	least, most := bounds([]float64{4})
	require.Equal(t, []float64{3, 5}, []float64{least, most})
}
