package publish

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/hitpage"
	"github.com/ringcache/ringcache/bench/page"
)

// The files below the root of the repository.
const (
	Data     = "docs/data/bench.csv"
	chartDir = "docs/charts"
)

// Pages are the files with blocks of figures.
var Pages = []string{"README.md", "docs/bench.md", "docs/peers.md"}

// Update writes the blocks of all pages below root, and the charts, from the run.
func (r *Run) Update(root string) error {
	blocks, err := r.blocks(root)
	if err != nil {
		return err
	}
	if err := page.Update(root, Pages, blocks); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return r.charts(filepath.Join(root, chartDir))
}

// blocks returns the text of each block by name.
func (r *Run) blocks(root string) (map[string]string, error) {
	hits, err := hitpage.Read(filepath.Join(root, hitpage.File))
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	found := map[string]string{
		"run": r.about(), "losses": r.losses(), "peers": r.peers(),
		"summary": r.summary(hits.Summary(summaryStores)),
	}
	for _, q := range questions {
		found[q.name] = r.table(q)
	}
	return found, nil
}

// Markdown returns all blocks as one document.
func (r *Run) Markdown() string {
	b := "# Figures\n\n" + r.about()
	for _, q := range questions {
		b += fmt.Sprintf("\n## %s\n\n%s", q.title, r.table(q))
	}
	return b + "\n## Where a rival is ahead\n\n" + r.losses()
}

// about says how the run was made.
func (r *Run) about() string {
	var stores []string
	for _, l := range loads {
		for _, name := range l.Stores {
			if !slices.Contains(stores, name) {
				stores = append(stores, name)
			}
		}
	}
	text := r.Machine.Header(r.Command, stores)
	text += fmt.Sprintf("- Rounds: %d; throughput is timed for %v in each, by %d goroutines\n",
		r.Rounds, r.Scale.Duration, r.Goroutines)
	if r.Note != "" {
		text += "- " + r.Note + "\n"
	}
	for _, f := range r.failures() {
		text += "- failed: " + f + "\n"
	}
	return text
}

var summaryStores = []string{us, "fastcache", "freecache", "bigcache", "otter"}

// summary is the table of the README, with the mean hit ratios.
func (r *Run) summary(hits []string) string {
	lines := r.lines(summary, summaryStores)
	lines = slices.Concat(lines[:len(lines)-1], hits, lines[len(lines)-1:],
		r.lines(summaryGC, summaryStores))
	table := grid(r.Machine.Long(), summaryStores, lines)
	for name, home := range homes {
		link := fmt.Sprintf("| [%s](https://%s) ", titles[name], home)
		table = strings.Replace(table, "| "+titles[name]+" ", link, 1)
	}
	return table
}

// homes are where the rivals come from.
var homes = map[string]string{
	"fastcache": "github.com/VictoriaMetrics/fastcache",
	"freecache": "github.com/coocood/freecache",
	"bigcache":  "github.com/allegro/bigcache",
	"otter":     "github.com/maypok86/otter",
}

// peers is the table of docs/peers.md.
func (r *Run) peers() string {
	q := question{rows: []row{summary.rows[0], summary.rows[3], summary.rows[4]}}
	lines := append(r.lines(q, summaryStores), r.lines(summaryGC, summaryStores)...)
	return grid(r.Machine.Long(), summaryStores, lines)
}
