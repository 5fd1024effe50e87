package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ringcache/ringcache/bench/hitratio"
)

// The files below the root of the repository.
const (
	Data     = "docs/data/bench.csv"
	HitData  = "docs/data/hitratio.csv"
	hitPage  = "docs/hitratio.md"
	chartDir = "docs/charts"
)

// Pages are the files with blocks of figures.
var Pages = []string{"README.md", "docs/bench.md", hitPage}

// Update writes the blocks of all pages below root, and the charts, from the run and the hit
// ratios that are there.
func (r *Run) Update(root string) error {
	rows, err := hitratio.ReadRows(filepath.Join(root, HitData))
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	for _, name := range Pages {
		if err := update(filepath.Join(root, name), r.blocks(name, rows)); err != nil {
			return fmt.Errorf("publish: write %s: %w", name, err)
		}
	}
	return r.charts(filepath.Join(root, chartDir), rows)
}

func update(file string, blocks map[string]string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := fill(string(old), blocks)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// blocks returns the text of each block of a page by name.
func (r *Run) blocks(page string, hits Hits) map[string]string {
	if page == hitPage {
		return hits.blocks()
	}
	found := map[string]string{
		"run": fragment("run", r), "losses": r.losses(), "summary": r.summary(hits).String(),
	}
	for _, q := range questions {
		found[q.name] = r.table(q)
	}
	return found
}

// section is a part of a document.
type section struct{ Title, Text string }

// Sections are the tables of all questions.
func (r *Run) Sections() (all []section) {
	for _, q := range questions {
		all = append(all, section{q.title, r.table(q)})
	}
	return append(all, section{"Where another cache is ahead", r.losses()})
}

// Markdown returns all tables as one document.
func (r *Run) Markdown() string { return fragment("document", r) }

// Header says on what machine the run was made, and of what.
func (r *Run) Header() string {
	var stores []string
	for _, l := range loads() {
		for _, name := range l.stores {
			if !slices.Contains(stores, name) {
				stores = append(stores, name)
			}
		}
	}
	return r.Machine.Header(r.Command, stores)
}

var summaryStores = []string{us, "fastcache", "freecache", "bigcache", otter, theine}

// homes are where the rivals come from.
var homes = map[string]string{
	"fastcache": "github.com/VictoriaMetrics/fastcache",
	"freecache": "github.com/coocood/freecache",
	"bigcache":  "github.com/allegro/bigcache",
	"otter":     "github.com/maypok86/otter",
	"theine":    "github.com/Yiling-J/theine-go",
}

// summary is the table of the README.
func (r *Run) summary(hits Hits) *Table {
	t := newTable(r.Machine.Long(), titled(summaryStores)...)
	for i, name := range summaryStores[1:] {
		t.Head[i+2] = fmt.Sprintf("[%s](https://%s)", title(name), homes[name])
	}
	r.addRows(t, summaryStores, getRow, mixRow, setRow)
	hits.summary(t, summaryStores)
	r.addRows(t, summaryStores, memoryRow, gcRow)
	return t
}
