package publish

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/objects"
	"github.com/ringcache/ringcache/bench/store"
)

const (
	notMeasured   = "Not measured in this run."
	notMeasurable = "not measurable"
)

// table renders a question. Rows in which nothing was measured are left out.
func (r *Run) table(q question) string {
	stores := r.stores(q)
	if len(stores) == 0 {
		return notMeasured + "\n"
	}
	head := r.Machine.Short()
	if q.unit != "" {
		head = q.unit + "; " + head
	}
	t := newTable(head, titled(stores)...)
	r.addRows(t, stores, q.rows...)
	return t.String()
}

// addRows adds those rows in which something was measured.
func (r *Run) addRows(t *Table, stores []string, rows ...row) {
	for _, row := range rows {
		if !r.measured(row) {
			continue
		}
		cells := make([]string, len(stores))
		for i, name := range stores {
			cells[i] = r.cell(row, name)
		}
		t.add(row.label, cells...)
	}
}

// stores returns those that the question is about and that have a figure.
func (r *Run) stores(q question) []string {
	return slices.DeleteFunc(slices.Clone(order), func(name string) bool {
		return !slices.ContainsFunc(q.rows, func(row row) bool {
			return slices.Contains(row.load.stores, name) && r.get(row, name).N > 0
		})
	})
}

// measured reports whether ringcache has figures in the row.
func (r *Run) measured(row row) bool {
	return r.get(row, us).N > 0 || r.get(row, objects.TypedStore).N > 0 ||
		r.get(row, objects.MemoStore).N > 0
}

// get returns the rounds of a store in a row.
func (r *Run) get(row row, name string) measure.Summary {
	if name == us && row.ours != "" {
		name = row.ours
	}
	return r.of(row.load.name, row.metric, name)
}

// cell is the median and the range of a store, and how it compares.
func (r *Run) cell(row row, name string) string {
	s := r.get(row, name)
	if s.N == 0 {
		return ""
	}
	switch kinds[row.metric] {
	case share:
		return shares(s)
	case noise:
		if name != store.Null && r.drowned(row, s) {
			return notMeasurable
		}
		return s.String()
	case views:
		if name != objects.OtterStore {
			return compared(s, s, r.get(row, objects.OtterStore))
		}
	case cost:
		if name != us && name != store.Null {
			return compared(s, r.get(row, us), s)
		}
	}
	return s.String()
}

// shares renders a part of a whole, without a range that would only repeat it.
func shares(s measure.Summary) string {
	number := func(v float64) string { return fmt.Sprintf("%.3f", v) }
	if number(s.Min) == number(s.Max) {
		return number(s.Median)
	}
	return s.Text(number)
}

// compared renders s, and ours over theirs.
func compared(s, ours, theirs measure.Summary) string {
	if ours.N == 0 || theirs.N == 0 {
		return s.String()
	}
	return s.String() + ", " + ours.Over(theirs)
}

// losses lists where a rival is ahead, by how much.
func (r *Run) losses() string {
	type loss struct {
		times float64
		cells []string
	}
	var found []loss
	seen := map[string]bool{}
	for _, q := range questions {
		for _, row := range q.rows {
			id := row.load.name + row.metric + row.ours
			for _, name := range order {
				if times := r.behind(row, name); !seen[id] && times >= 1.005 {
					ours, theirs := r.get(row, r.ourBest(row)), r.get(row, name)
					ratio := ours.Over(theirs)
					if kinds[row.metric] == share {
						ratio = theirs.Over(ours)
					}
					found = append(found, loss{times, []string{q.title + ", " + row.label, ratio,
						r.plain(row, ours), title(name), r.plain(row, theirs)}})
				}
			}
			seen[id] = true
		}
	}
	if len(found) == 0 {
		return "None.\n"
	}
	slices.SortStableFunc(found, func(a, b loss) int { return cmp.Compare(b.times, a.times) })
	t := newTable("", "ratio", us, "ahead", "its figure")
	for _, l := range found {
		t.add(l.cells[0], l.cells[1:]...)
	}
	return t.String()
}

// plain renders the figures of a store without a ratio.
func (r *Run) plain(row row, s measure.Summary) string {
	switch {
	case kinds[row.metric] == share:
		return shares(s)
	case r.drowned(row, s):
		return notMeasurable
	}
	return s.String()
}

// drowned reports whether an empty process may have taken as long.
func (r *Run) drowned(row row, s measure.Summary) bool {
	return kinds[row.metric] == noise && s.Min <= r.get(row, store.Null).Max
}

// notRivals are the columns that are not another cache.
var notRivals = []string{us, objects.TypedStore, objects.MemoStore, store.Null}

// ourBest is the store whose figure stands for ringcache in a row.
func (r *Run) ourBest(row row) string {
	switch memo := r.get(row, objects.MemoStore); {
	case memo.N > 0:
		return objects.MemoStore
	case r.get(row, objects.TypedStore).N > 0:
		return objects.TypedStore
	}
	return us
}

// behind returns by what factor a rival is ahead of ringcache: below 1, it is not.
func (r *Run) behind(row row, name string) float64 {
	k, ours, theirs := kinds[row.metric], r.get(row, r.ourBest(row)), r.get(row, name)
	switch {
	case slices.Contains(notRivals, name) || ours.N == 0 || theirs.N == 0 || r.drowned(row, ours):
		return 0
	case k == share:
		return theirs.Median / ours.Median
	}
	return ours.Median / theirs.Median
}
