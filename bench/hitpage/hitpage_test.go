package hitpage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/page"
)

const root = "../.."

const advice = "run `go run ./cmd/hitratio -publish -pages`"

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func published(t *testing.T) Data {
	t.Helper()
	d, err := Read(filepath.Join(root, File))
	require.NoError(t, err)
	return d
}

// The page and the charts show what the data gives, and nothing else.
func TestPageIsMadeFromTheData(t *testing.T) {
	copied := t.TempDir()
	for _, name := range Pages {
		file := filepath.Join(copied, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(readFile(t, name)), 0o644))
	}
	d := published(t)
	require.NoError(t, d.Update(copied))
	for _, name := range Pages {
		made, err := os.ReadFile(filepath.Join(copied, name))
		require.NoError(t, err)
		require.True(t, string(made) == readFile(t, name), "%s: %s", name, advice) // without both pages
	}
	charts, err := os.ReadDir(filepath.Join(copied, chartDir))
	require.NoError(t, err)
	for _, c := range charts {
		made, err := os.ReadFile(filepath.Join(copied, chartDir, c.Name()))
		require.NoError(t, err)
		require.True(t, string(made) == readFile(t, chartDir+"/"+c.Name()), "%s: %s", c.Name(), advice)
	}
	there, err := filepath.Glob(filepath.Join(root, chartDir, "hitratio-*.svg"))
	require.NoError(t, err)
	require.Len(t, there, len(charts), "charts that nothing makes")
}

// Every block is shown, and every cell of its tables has a figure.
func TestEveryBlockIsShown(t *testing.T) {
	names := page.Blocks(readFile(t, Pages[0]))
	for name := range published(t).Blocks() {
		require.Contains(t, names, name)
	}
}

// A figure in the prose is one of those in the tables.
func TestProseHasNoFiguresOfItsOwn(t *testing.T) {
	tables := ""
	for _, text := range published(t).Blocks() {
		tables += text
	}
	for _, name := range append(slices.Clone(Pages), "docs/policy.md") {
		require.Empty(t, page.Unfounded(readFile(t, name), tables), name)
	}
}

// rows are of several stores on one workload.
func rows(s set, load, percent string, hits map[string]float64) (d Data) {
	for _, store := range []string{us, otter, theine} {
		if v, ok := hits[store]; ok {
			d = append(d, Row{Mode: s.mode, Values: s.values, Writes: s.writes, Payload: s.payload,
				Load: load, Percent: percent, Store: store, Hits: v, Date: "2026-01-02"})
		}
	}
	return d
}

func three(s set, load, percent string, ours, second, third float64) Data {
	return rows(s, load, percent, map[string]float64{us: ours, otter: second, theine: third})
}

func TestTally(t *testing.T) {
	d := slices.Concat(
		three(capacity, "a", "10", 50, 49, 49.25), // +0.75
		three(capacity, "b", "10", 50, 50.5, 0),   // -0.5
		three(capacity, "c", "30", 50, 0, 53),     // -3
		three(capacity, "d", "30", 50, 50, 40),    // 0
		rows(capacity, "e", "30", map[string]float64{us: 50, otter: 1}),
		three(tiny, "f", "1", 50, 0, 0),
	)
	c := count(d.leads(capacity, us, otter, theine))
	require.Equal(t, "1 / 2 / 1", c.score())
	require.InDelta(t, -0.25, c.median, 1e-9)
	require.Equal(t, []string{"x", "4", "1 / 2 / 1", "-0.25", "-0.69", "c, 30 %: -3.0",
		"a, 10 %: +0.8"}, c.line("x"))
	require.Equal(t, "0", count(nil).line("x")[1])
	require.Contains(t, d.balance(), "| recorded, 1 % | 1 | 1 / 0 / 0 |")
	require.Equal(t, "- 1 %: none.\n- 10 %: none.\n- 30 %: c -3.0.\n", d.losses())
}

// A mean is of all pairs, or there is none.
func TestMean(t *testing.T) {
	d := slices.Concat(three(capacity, "a", "10", 50, 10, 20), three(capacity, "b", "30", 60, 10, 20),
		rows(capacity, "c", "30", map[string]float64{us: 70, otter: 40}))
	require.Equal(t, []string{"x", "**60.0**", "20.0", ""},
		d.line("x", capacity, []string{us, otter, theine}, hits))
	require.Equal(t, 3, d.loads(capacity))
	one := capacity.of(func(load string) bool { return load == "a" })
	require.Equal(t, []pair{{"a", "10"}}, d.pairs(one))
}

func TestCurveIsInTheOrderOfSizes(t *testing.T) {
	d := slices.Concat(three(memory("10000"), "a", "30", 3, 2, 1),
		three(memory("300"), "a", "30", 3, 2, 1), three(memory("1000"), "a", "30", 3, 2, 1))
	require.Equal(t, []string{"300", "1000", "10000"}, d.sizes())
	d[0].Held, d[1].Held = 0.978, 0.5
	require.Contains(t, d.curve(), "| 10,000 bytes | **3.0** (98) | 2.0 (50) | 1.0 (0) | | | "+
		"1 / 0 / 0 | +1.00 |\n")
	require.Equal(t, "100", grouped("100"))
}

// Updates are compared on the workloads that are replayed with all shares of them.
func TestUpdatesAreOfTheSameWorkloads(t *testing.T) {
	with := func(share string) set { s := capacity; s.writes = share; return s }
	d := slices.Concat(three(capacity, "a", "10", 50, 40, 30), three(capacity, "b", "10", 90, 90, 90),
		three(with("0.2"), "a", "10", 45, 35, 30), three(with("0.5"), "a", "10", 40, 30, 30))
	require.Contains(t, d.updates(), "| 0 % updates | **50.0** | 40.0 | 30.0 | |")
	require.Contains(t, d.updates(), "| 50 % updates | **40.0** |")
}

func TestReadRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.csv")
	for text, want := range map[string]string{
		"error\n\n\"": "read ", "a,error\n1,\n": "there is no column", "error,error\nx,\n": "",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		d, err := Read(file)
		if want == "" {
			require.NoError(t, err)
			require.Empty(t, d, "a row that failed")
			continue
		}
		require.ErrorContains(t, err, want)
	}
	_, err := Read(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestRunsSaysHowFarTheyAreApart(t *testing.T) {
	d := three(capacity, "a", "10", 50, 40, 30)
	require.Equal(t, "Measured 2026-01-02 (ringcache) and 2026-01-02 (the others), once.\n",
		d.runs())
	for i := range 10 {
		d = append(d, Row{Load: "b", Percent: "30", Store: us, Date: "2026-01-04", Rounds: 3,
			Spread: float64(i)})
	}
	require.Contains(t, d.runs(), "Measured 2026-01-02 to 2026-01-04 (ringcache) ")
	require.Contains(t, d.runs(), "once, except that 10 rows of ringcache are medians of 3 runs, "+
		"which are 5.0 points apart in the median row, 9.0 at the 90th percentile, and up to 9.0 "+
		"(b, 30 %).\n")
}

func TestOffNamesWhoIsFarOff(t *testing.T) {
	d := Data{
		{Mode: "capacity", Store: us, Held: 1.01}, {Mode: "memory", Store: us, Memory: 0.98},
		{Mode: "capacity", Store: "fastcache", Held: 1.2},
		{Mode: "capacity", Store: "fastcache", Held: 0.9},
		{Mode: "memory", Store: "bigcache", Memory: 0.8, Refused: 0.01},
	}
	require.Equal(t, "- Share of the budget held, at equal capacity: fastcache 0.90 to 1.20.\n"+
		"- Share of the budget taken, at equal memory: BigCache 0.80 to 0.80.\n"+
		"- Sets refused, in percent of the requests: BigCache 1.00 to 1.00.\n", d.off())
}

func TestSummary(t *testing.T) {
	d := slices.Concat(three(capacity, "a", "10", 50, 40, 60),
		three(memory("100"), "a", "30", 50, 60, 0),
		rows(memory("1000"), "a", "30", map[string]float64{us: 70}))
	require.Equal(t, []string{
		"| hit ratio, %: mean of 1 workloads, equal bytes of entries (won / tied / lost against " +
			"otter: 1 / 0 / 0) | 50.0 | 40.0 |\n",
		"| hit ratio, %: mean of 1 workloads, equal memory, values of 100; 1,000 bytes (won / tied / " +
			"lost against otter: 0 / 0 / 1) | 50.0; 70.0 | 60.0 |\n",
	}, d.Summary([]string{us, otter}))
}
