package hitpage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/ringcache/ringcache/bench/chart"
	"github.com/ringcache/ringcache/bench/page"
)

// chartDir is below the root of the repository.
const chartDir = "docs/charts"

// Pages are the files with figures of this data; the README has two more lines of them.
var Pages = []string{"docs/hitratio.md"}

// Update writes the blocks of the page below root, and the charts.
func (d Data) Update(root string) error {
	if err := page.Update(root, Pages, d.Blocks()); err != nil {
		return fmt.Errorf("hitpage: %w", err)
	}
	return d.charts(filepath.Join(root, chartDir))
}

func (d Data) charts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("hitpage: %w", err)
	}
	file := func(name string) string { return filepath.Join(dir, "hitratio-"+name+".svg") }
	bars := func(name, title string, stores []string, groups []string, sets []set) error {
		return chart.Bars(file(name), title, "mean hit ratio in %", true, groups,
			d.series(sets, stores))
	}
	var sizes, parts []string
	var bySize, byPart []set
	for _, size := range d.sizes() {
		sizes, bySize = append(sizes, "values of "+grouped(size)+" bytes"), append(bySize, memory(size))
	}
	for _, percent := range capacity.percents {
		s := capacity
		s.percents = []string{percent}
		parts, byPart = append(parts, percent+" % of the footprint"), append(byPart, s)
	}
	return errors.Join(
		bars("capacity", fmt.Sprintf("Equal capacity, %d workloads", d.loads(capacity)), everyone,
			parts, byPart),
		bars("memory", fmt.Sprintf("Equal memory, %d recorded workloads", d.loads(memory("100"))),
			curveStores, sizes, bySize),
		d.differences(file("differences")),
	)
}

// series are the means of each store over each of the sets.
func (d Data) series(sets []set, stores []string) (all []chart.Series) {
	for _, name := range stores {
		s := chart.Series{Name: title(name)}
		if name == fifo {
			s.Name = us + ", " + title(name) // in the color of ringcache
		}
		for _, set := range sets {
			mean, ok := d.mean(set, name, hits)
			if !ok {
				mean = math.NaN()
			}
			s.Values = append(s.Values, mean)
		}
		all = append(all, s)
	}
	return all
}

// differences draws how far ringcache is from the better of otter and theine, from the best to
// the worst.
func (d Data) differences(file string) error {
	var rows []string
	var points []float64
	for _, l := range slices.Backward(count(d.against(capacity, tiny)).leads) {
		rows, points = append(rows, l.String()), append(points, l.by)
	}
	return chart.Dots(file, "ringcache at equal capacity",
		"points above the better of otter and theine", rows, points)
}
