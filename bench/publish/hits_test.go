package publish

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/hitratio"
)

// counted returns the counts of a hit ratio.
func counted(percent float64) (o hitratio.Outcome) {
	o.Requests, o.Hits = 100_000, int64(1000*percent)
	return o
}

// rows are of several stores on one workload.
func rows(s set, load string, percent float64, hits map[string]float64) (d Hits) {
	plan := hitratio.Plan{Load: load, Percent: percent, Values: s.values, Writes: s.writes,
		Payload: s.payload, Budget: 1000}
	for _, store := range []string{us, otter, theine} {
		if v, ok := hits[store]; ok {
			d = append(d, hitratio.Row{Mode: s.mode, Plan: plan, Store: store, Outcome: counted(v),
				Date: "2026-01-02"})
		}
	}
	return d
}

func three(s set, load string, percent float64, ours, second, third float64) Hits {
	return rows(s, load, percent, map[string]float64{us: ours, otter: second, theine: third})
}

func TestTally(t *testing.T) {
	d := slices.Concat(
		three(capacity, "a", 10, 50, 49, 49.25), // +0.75
		three(capacity, "b", 10, 50, 50.5, 0),   // -0.5
		three(capacity, "c", 30, 50, 0, 53),     // -3
		three(capacity, "d", 30, 50, 50, 40),    // 0
		rows(capacity, "e", 30, map[string]float64{us: 50, otter: 1}),
		three(tiny, "f", 1, 50, 0, 0),
	)
	c := count(d.leads(capacity, us, otter, theine))
	require.Equal(t, "1 / 2 / 1", c.score())
	require.InDelta(t, -0.25, c.median, 1e-9)
	tallies := newTallies()
	tallies.addTally("x", c.leads)
	tallies.addTally("y", nil)
	require.Equal(t, []string{"x", "4", "1 / 2 / 1", "-0.25", "-0.69", "c, 30 %: -3.0",
		"a, 10 %: +0.8"}, tallies.Rows[0])
	require.Equal(t, "0", tallies.Rows[1][1])
	require.Contains(t, d.balance().String(), "| recorded, 1 % | 1 | 1 / 0 / 0 |")
	require.Equal(t, "- 1 %: none.\n- 10 %: none.\n- 30 %: c -3.0.\n", d.blocks()["losses"])
}

// A mean is of all pairs, or there is none.
func TestMean(t *testing.T) {
	d := slices.Concat(three(capacity, "a", 10, 50, 10, 20), three(capacity, "b", 30, 60, 10, 20),
		rows(capacity, "c", 30, map[string]float64{us: 70, otter: 40}))
	require.Equal(t, []string{"**60.0**", "20.0", ""},
		d.line(capacity, []string{us, otter, theine}, hitRatio))
	require.Equal(t, 3, d.loads(capacity))
	one := capacity.of(func(load string) bool { return load == "a" })
	require.Equal(t, []pair{{"a", 10}}, d.pairs(one))
}

func TestCurveIsInTheOrderOfSizes(t *testing.T) {
	d := slices.Concat(three(memory("10000"), "a", 30, 3, 2, 1),
		three(memory("300"), "a", 30, 3, 2, 1), three(memory("1000"), "a", 30, 3, 2, 1))
	require.Equal(t, []hitratio.Values{"300", "1000", "10000"}, d.sizes())
	d[0].Held, d[1].Held = 978, 500
	require.Contains(t, d.curve().String(),
		"| 10,000 bytes | **3.0** (98) | 2.0 (50) | 1.0 (0) |  |  | "+
			"1 / 0 / 0 | +1.00 |\n")
	require.Equal(t, "100", grouped("100"))
}

// Updates are compared on the workloads that are replayed with all shares of them.
func TestUpdatesAreOfTheSameWorkloads(t *testing.T) {
	with := func(share float64) set { s := capacity; s.writes = share; return s }
	d := slices.Concat(three(capacity, "a", 10, 50, 40, 30), three(capacity, "b", 10, 90, 90, 90),
		three(with(0.2), "a", 10, 45, 35, 30), three(with(0.5), "a", 10, 40, 30, 30))
	require.Contains(t, d.updates().String(), "| 0 % updates | **50.0** | 40.0 | 30.0 |  |")
	require.Contains(t, d.updates().String(), "| 50 % updates | **40.0** |")
}

func TestRunsSaysHowFarTheyAreApart(t *testing.T) {
	d := three(capacity, "a", 10, 50, 40, 30)
	require.Equal(t, "Measured 2026-01-02 (ringcache) and 2026-01-02 (the others), once.\n",
		fragment("runs", d))
	for i := range 10 {
		d = append(d, hitratio.Row{Plan: hitratio.Plan{Load: "b", Percent: 30}, Store: us,
			Date: "2026-01-04", Rounds: 3, Spread: float64(i)})
	}
	require.Contains(t, fragment("runs", d), "Measured 2026-01-02 to 2026-01-04 (ringcache) ")
	require.Contains(t, fragment("runs", d), "once, except that 10 rows (ringcache) are medians of "+
		"3 runs, which are 5.0 points apart in the median row, 9.0 at the 90th percentile, and up to "+
		"9.0 (b, 30 %).\n")
}

func TestOffNamesWhoIsFarOff(t *testing.T) {
	of := func(mode, store string, held, taken, refused int64) hitratio.Row {
		o := counted(50)
		o.Held, o.Memory, o.Refused = held, taken, refused
		return hitratio.Row{Mode: mode, Store: store, Plan: hitratio.Plan{Budget: 100}, Outcome: o}
	}
	d := Hits{
		of(hitratio.Capacity, us, 101, 0, 0), of(hitratio.Memory, us, 0, 98, 0),
		of(hitratio.Capacity, "fastcache", 120, 0, 0), of(hitratio.Capacity, "fastcache", 90, 0, 0),
		of(hitratio.Memory, "bigcache", 0, 80, 1000),
	}
	require.Equal(t, "- Share of the budget held, at equal capacity: fastcache 0.90 to 1.20.\n"+
		"- Share of the budget taken, at equal memory: BigCache 0.80 to 0.80.\n"+
		"- Sets refused, in percent of the requests: BigCache 1.00 to 1.00.\n", d.blocks()["off"])
}

func TestSummary(t *testing.T) {
	d := slices.Concat(three(capacity, "a", 10, 50, 40, 60), three(capacity, "a", 30, 70, 60, 60))
	table := newTable("")
	d.summary(table, []string{us, otter})
	require.Equal(t, [][]string{{"mean hit ratio in %, equal capacity of 10 and 30 % of the data of " +
		"1 workloads, on most of which ringcache was tuned (won / tied / lost against the better of " +
		"otter and theine: 1 / 0 / 1), " +
		"2026-01-02", "**60.0**",
		"50.0"}}, table.Rows)
}

// What cmd/hitratio prints has a table for each kind of replays.
func TestHitRatios(t *testing.T) {
	d := slices.Concat(three(capacity, "a", 10, 50, 40, 60), three(capacity, "b", 30, 70, 20, 10),
		three(inJSON, "a", 10, 50, 40, 30), rows(inJSON, "b", 10, map[string]float64{us: 70}))
	d[6].Plan.Writes = 0.2
	text := HitRatios(d)
	for _, want := range []string{
		"## Equal capacity, values: sized\n\n| load, size | ringcache | otter | theine |\n",
		"| a, 10 % | 50.00 | 40.00 | **60.00** |\n", "| mean | **60.00** | 30.00 | 35.00 |\n",
		"| ringcache, against otter and theine | 2 | 1 / 0 / 1 |",
		"## Equal memory, values: sized json\n", "## Equal memory, values: sized json, 20 % updates\n",
		"- Share of the budget held",
	} {
		require.Contains(t, text, want)
	}
}
