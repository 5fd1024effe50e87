package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/table"
)

// document is all that was measured, and where and how.
type document struct {
	machine    machine.Machine
	command    string
	options    *options
	results    []result
	unplanned  []string
	incomplete bool
}

// manyEntries is 8 for each of 512 buckets. A cache of fewer says little about
// caches that are split into buckets.
const manyEntries = 512 * 8

// diffs are the differences that the tables show, in points.
var diffs = []table.Diff{
	{Name: "ringcache - best of otter, theine", Of: "ringcache", Than: []string{"otter", "theine"}},
	{Name: "- LRU", Of: "ringcache", Than: []string{"golang-lru"}},
	{Name: "- FIFO (fastcache)", Of: "ringcache", Than: []string{"fastcache"}},
	{Name: "- FIFO (ringcache)", Of: "ringcache", Than: []string{"ringcache-fifo"}},
	{Name: "ringcache-s2 - ringcache", Of: "ringcache-s2", Than: []string{"ringcache"}},
	{Name: "- control", Of: "ringcache-s2", Than: []string{"ringcache-control"}},
	{Name: "- best of the others", Of: "ringcache-s2",
		Than: []string{"fastcache", "freecache", "otter", "theine"}},
}

// section is one kind of replays: what is equal, and how large values are.
type section struct {
	mode    string
	late    bool // of late reads
	values  hitratio.Values
	results []result
}

func (d *document) sections() []section {
	var all []section
	for _, mode := range d.options.modes {
		for _, values := range d.options.values {
			for _, late := range []bool{false, true} {
				s := section{mode: mode, values: values, late: late}
				for _, r := range d.results {
					if r.mode == mode && r.plan.Values == values && d.options.isLate(r.plan.Load) == late {
						s.results = append(s.results, r)
					}
				}
				if len(s.results) > 0 {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// plans lists the plans of the results in their order.
func (s *section) plans() []*hitratio.Plan {
	var plans []*hitratio.Plan
	for _, r := range s.results {
		if !slices.Contains(plans, r.plan) {
			plans = append(plans, r.plan)
		}
	}
	return plans
}

// figures are those of all stores for one plan; None for what failed.
func (s *section) figures(
	p *hitratio.Plan, stores []string, of func(*hitratio.Outcome) float64,
) []float64 {
	values := slices.Repeat([]float64{table.None}, len(stores))
	for _, r := range s.results {
		if i := slices.Index(stores, r.store); i >= 0 && r.plan == p && r.err == nil {
			values[i] = of(r.Outcome)
		}
	}
	return values
}

func objectRatio(o *hitratio.Outcome) float64 { return o.Ratio() }

// besideRatio is of the loads that have hot keys beside the late reads.
func besideRatio(o *hitratio.Outcome) float64 {
	if o.Beside == 0 {
		return table.None
	}
	return o.BesideRatio()
}

func byteRatio(o *hitratio.Outcome) float64 { return o.ByteRatio() }

// table makes the table of one figure.
func (d *document) table(s *section, of func(*hitratio.Outcome) float64) *table.Table {
	stores, plans := d.options.storeNames(), s.plans()
	t := table.New("load, size", stores, diffs)
	for _, p := range plans {
		t.Add(p.String(), s.figures(p, stores, of))
	}
	all := func(int) bool { return true }
	many := func(i int) bool { return plans[i].Entries() >= manyEntries }
	t.AddMeans("mean", all)
	t.AddMeans("mean, at least 8 entries in each of 512 buckets", many)
	if len(t.Diffs) > 0 {
		t.AddLeast("least", all)
		t.AddLeast("least, at least 8 entries in each of 512 buckets", many)
	}
	return t
}

// write prints the Markdown to stdout or its file, and what else is asked for.
func (d *document) write(stdout io.Writer) error {
	if d.options.csv != "" {
		if err := writeCSV(d.options.csv, d.results); err != nil {
			return err
		}
	}
	if err := cli.Write(d.options.markdown, stdout, d.markdown()); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

func (d *document) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Hit ratios beside other caches\n\n%s",
		d.machine.Header(d.command, d.options.storeNames()))
	b.WriteString(`
Read-through: Get, and on a miss Set. Every request counts, from the first one on an empty cache: no
warm-up is left out. Updates, if there are any, are Sets of a value of another length, and count
neither as hits nor as misses. Sizes are percent of the footprint, the bytes of all keys and values
of the load. Figures are percent, differences are points; the best store of a row is in bold.
`)
	if d.incomplete {
		b.WriteString("\n**Interrupted: figures are missing.**\n")
	}
	for _, s := range d.sections() {
		if s.late {
			fmt.Fprintf(&b,
				"\n## %s\n\nOnly what is read after three turns of the cache counts.\n\n### Late reads\n\n%s"+
					"\n### Hot keys beside them\n\n%s", s.title(),
				d.table(&s, objectRatio).Markdown(), d.table(&s, besideRatio).Markdown())
			list(&b, "Remarks", d.remarks(&s))
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n### Objects\n\n%s", s.title(), d.table(&s, objectRatio).Markdown())
		if s.values == hitratio.Sized { // else all objects are of one size
			fmt.Fprintf(&b, "\n### Bytes\n\n%s", d.table(&s, byteRatio).Markdown())
		}
		list(&b, "Remarks", d.remarks(&s))
	}
	list(&b, "Left out", d.unplanned)
	return b.Bytes()
}

// payload is what values are filled with, "" if that is nothing in particular.
func (s *section) payload() string { return s.results[0].plan.Payload }

// writes is the share of the requests that are updates.
func (s *section) writes() float64 { return s.results[0].plan.Writes }

func (s *section) title() string {
	what := "Equal capacity in bytes of keys and values"
	switch s.mode {
	case memoryMode:
		what = "Equal memory of the process"
	case boundMode:
		what = "Equal bounds, as each cache understands them"
	}
	what += ", "
	if s.payload() != "" {
		what += s.payload() + " "
	}
	if n := s.values.Bytes(); n > 0 {
		what += fmt.Sprintf("values of %d bytes", n)
	} else {
		what += "values of realistic sizes"
	}
	if s.late {
		what += ", late reads"
	}
	if w := s.writes(); w > 0 {
		what += fmt.Sprintf(", %v %% of the requests are updates", math.Round(1e4*w)/100)
	}
	return what
}

func list(b *bytes.Buffer, title string, items []string) {
	if len(items) > 0 {
		fmt.Fprintf(b, "\n%s:\n\n- %s\n", title, strings.Join(items, "\n- "))
	}
}

// remarks says what the tables do not show: failures, caches that do not have
// what they should, and refused Sets.
func (d *document) remarks(s *section) []string {
	var remarks []string
	for _, info := range d.options.stores {
		var of storeRemarks
		for _, r := range s.results {
			if r.store == info.Name {
				remarks = append(remarks, of.add(r)...)
			}
		}
		if text := of.off(info, s.mode); text != "" {
			remarks = append(remarks, text)
		}
		if of.refusing > 0 {
			remarks = append(remarks,
				fmt.Sprintf("%s refused Sets on %d of %d caches, of up to %.1f %% of the requests",
					info.Name, of.refusing, of.caches, 100*of.refused))
		}
	}
	return remarks
}

// storeRemarks sums up the results of one store.
type storeRemarks struct {
	caches, unequal, refusing int
	least, most               float64 // of what it should have
	refused                   float64 // largest share of the requests
}

// add returns what is to be said about one result alone.
func (s *storeRemarks) add(r result) []string {
	s.caches++
	if r.err != nil {
		return []string{fmt.Sprintf("failed: %v", r.String())}
	}
	if r.Refused > 0 {
		s.refusing++
		s.refused = max(s.refused, float64(r.Refused)/float64(r.Requests))
	}
	if r.off > tolerance[r.mode] {
		has := r.has()
		if s.unequal == 0 {
			s.least, s.most = has, has
		}
		s.unequal++
		s.least, s.most = min(s.least, has), max(s.most, has)
	}
	return nil
}

// has returns what the cache has of what it should.
func (r *result) has() float64 {
	if r.mode == capacityMode {
		return float64(r.Held) / float64(r.plan.Budget)
	}
	return 1 + math.Copysign(r.off, float64(r.Memory-r.plan.Budget))
}

func (s *storeRemarks) off(info store.Info, mode string) string {
	if s.unequal == 0 {
		return ""
	}
	what := "keys and values"
	if mode == memoryMode {
		what = "memory"
	}
	return fmt.Sprintf(
		"%s has more than %.0f %% more or less %s than it should on %d of %d caches: from %.2f to %.2f "+
			"of it",
		info.Name, 100*tolerance[mode], what, s.unequal, s.caches, s.least, s.most)
}

// failure reports failed replays as one error.
func (d *document) failure() error {
	failed, first := 0, ""
	for _, r := range d.results {
		if r.err != nil {
			if failed++; failed == 1 {
				first = r.String()
			}
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d caches failed, the first: %s", failed, len(d.results), first)
}
