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

func TestBars(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	require.NoError(t, Bars(file, "Bars", "%", true, groups, series))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, want := range []string{"<svg", "three &lt;3&gt;", accent, ink, grey, "theirs"} {
		require.Contains(t, string(first), want)
	}
	wellFormed(t, string(first))
	require.NoError(t, Bars(file, "Bars", "%", true, groups, series))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(first), string(again), "the same figures give the same file")
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
