package publish

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The files below the root of the repository.
const (
	Data     = "docs/data/bench.csv"
	hitData  = "docs/data/hitratio.csv"
	chartDir = "docs/charts"
)

// Pages are the files with blocks of figures.
var Pages = []string{"README.md", "docs/bench.md", "docs/peers.md"}

// block is a part of a page that is made from data.
var block = regexp.MustCompile(`(?s)(<!-- figures: (\S+) -->\n).*?(<!-- /figures -->)`)

// Update writes the blocks of all pages below root, and the charts, from the run.
func (r *Run) Update(root string) error {
	blocks, err := r.blocks(root)
	if err != nil {
		return err
	}
	for _, page := range Pages {
		file := filepath.Join(root, page)
		old, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		text, err := fill(string(old), blocks)
		if err != nil {
			return fmt.Errorf("publish: write %s: %w", page, err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	return r.charts(filepath.Join(root, chartDir))
}

// fill puts the blocks into a page.
func fill(page string, blocks map[string]string) (string, error) {
	var unknown error
	text := block.ReplaceAllStringFunc(page, func(old string) string {
		m := block.FindStringSubmatch(old)
		text, ok := blocks[m[2]]
		if !ok {
			unknown = errors.Join(unknown, fmt.Errorf("there are no figures %q", m[2]))
		}
		return m[1] + text + m[3]
	})
	return text, unknown
}

// blocks returns the text of each block by name.
func (r *Run) blocks(root string) (map[string]string, error) {
	hits, err := hitRatios(filepath.Join(root, hitData))
	if err != nil {
		return nil, err
	}
	found := map[string]string{
		"run": r.about(), "losses": r.losses(), "summary": r.summary(hits), "peers": r.peers(),
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
		for _, name := range l.stores {
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

// hitRatios returns two lines of mean hit ratios from the file of cmd/hitratio.
func hitRatios(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("publish: read %s: %w", file, err)
	}
	column := func(line []string, name string) string { return line[slices.Index(lines[0], name)] }
	mean := func(name, mode, values string, percents ...string) string {
		sum, n := 0.0, 0
		for _, line := range lines[1:] {
			if column(line, "store") != name || column(line, "mode") != mode ||
				column(line, "values") != values || !slices.Contains(percents, column(line, "percent")) {
				continue
			}
			v, err := strconv.ParseFloat(column(line, "hit_ratio"), 64)
			if err == nil {
				sum, n = sum+v, n+1
			}
		}
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f", sum/float64(n))
	}
	bytes := "| hit ratio, %: mean of 27 workloads, equal bytes of entries |"
	memory := "| hit ratio, %: mean of 13 workloads, equal memory, entries of 16 + 100 bytes |"
	for _, name := range summaryStores {
		bytes += " " + mean(name, "capacity", "sized", "10", "30") + " |"
		memory += " " + mean(name, "memory", "small", "30") + " |"
	}
	return []string{bytes + "\n", memory + "\n"}, nil
}
