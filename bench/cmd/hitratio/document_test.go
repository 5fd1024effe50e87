package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/table"
)

// someDocument has two loads on three stores, one of which failed once.
func someDocument(t *testing.T) *document {
	t.Helper()
	o, err := parseOptions([]string{"-loads", "loop", "-stores", "ringcache,fastcache,theine"},
		new(strings.Builder))
	if err != nil {
		t.Fatal(err)
	}
	large := &hitratio.Plan{Load: "a", Percent: 10, Values: hitratio.Sized, Keys: 100_000,
		Footprint: 1e9, Budget: 1e8}
	few := &hitratio.Plan{Load: "b", Percent: 10, Values: hitratio.Sized, Keys: 100, Footprint: 1e9,
		Budget: 1e8}
	cell := func(p *hitratio.Plan, store string, hits, held int64) result {
		return result{mode: capacityMode, plan: p, store: store, off: max(0, float64(held)/1e8-1),
			Outcome: &hitratio.Outcome{
				Counts: hitratio.Counts{Requests: 1000, Hits: hits, Bytes: 1000, HitBytes: hits / 2},
				Held:   held,
			}}
	}
	d := &document{options: o, unplanned: []string{"c is too long"}}
	d.results = []result{
		cell(large, "ringcache", 500, 1e8), cell(large, "fastcache", 400, 1.3e8),
		cell(large, "theine", 450, 1e8),
		cell(few, "ringcache", 200, 1e8), cell(few, "fastcache", 100, 1.1e8),
		{mode: capacityMode, plan: few, store: "theine", err: errors.New("wrong value")},
	}
	d.results[0].Refused = 20
	return d
}

func TestDocument(t *testing.T) {
	d := someDocument(t)
	text := string(d.markdown())
	for _, want := range []string{
		"| load, size | ringcache | fastcache | theine | ringcache - best of otter, theine | - FIFO " +
			"(fastcache) |\n",
		"| a, 10 % | **50.00** | 40.00 | 45.00 | +5.00 | +10.00 |\n",
		"| b, 10 % | **20.00** | 10.00 | - | - | +10.00 |\n",
		"| mean (1) | **50.00** | 40.00 | 45.00 | +5.00 | +10.00 |\n",
		"| least | - | - | - | +5.00 | +10.00 |\n",
		"| a, 10 % | **25.00** | 20.00 | 22.50 | +2.50 | +5.00 |\n", // bytes
		"- failed: capacity, sized values, b, 10 %, theine: failed: wrong value\n",
		"- fastcache has more than 1 % more or less keys and values than it should on 2 of 2 caches: " +
			"from 1.10 to 1.30 of it\n",
		"- ringcache refused Sets on 1 of 2 caches, of up to 2.0 % of the requests\n",
		"Left out:\n\n- c is too long\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}
	if err := d.failure(); err == nil || !strings.Contains(err.Error(), "1 of 6") {
		t.Errorf("error %v", err)
	}
}

// TestFewEntriesAreApart wants the second mean without caches of few entries.
func TestFewEntriesAreApart(t *testing.T) {
	d := someDocument(t)
	s := d.sections()[0]
	foot := d.table(&s, func(o *hitratio.Outcome) float64 { return float64(o.Hits) }).Foot
	if len(foot) != 4 || !strings.Contains(foot[1].Label, "8 entries") || foot[1].Values[0] != 500 {
		t.Errorf("%+v", foot)
	}
	// only NaN differs from itself
	if v := s.figures(s.plans()[1], []string{"theine"}, objectRatio)[0]; v == v {
		t.Errorf("a failed replay has the figure %v, want %v", v, table.None)
	}
}

func TestMedianOfRounds(t *testing.T) {
	round := func(hits int64) result {
		return result{Outcome: &hitratio.Outcome{Counts: hitratio.Counts{Requests: 100, Hits: hits}}}
	}
	r := median([]result{round(30), round(50), round(20)})
	if r.Ratio() != 30 || r.rounds != 3 || r.spread != 30 {
		t.Errorf("%v %%, %d rounds, %v points apart", r.Ratio(), r.rounds, r.spread)
	}
	if r = median([]result{round(30), round(50)}); r.Ratio() != 30 {
		t.Errorf("%v %% of two rounds", r.Ratio())
	}
	if r = median([]result{{err: errors.New("failed")}}); r.err == nil {
		t.Error("a failure is lost")
	}
}
