package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ringcache/ringcache/bench/chart"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/table"
)

var csvHead = []string{
	"mode", "values", "payload", "writes", "load", "percent", "store", "hit_ratio", "byte_hit_ratio",
	"requests", "hits", "refused",
	"copies", "keys", "entry_bytes", "stretch", "entries", "footprint_bytes", "budget_bytes",
	"max_bytes", "held_bytes", "memory_bytes", "peak_bytes", "off", "replays", "seconds",
	"beside_requests", "beside_hits", "error",
}

func (d *document) writeCSV(file string) error {
	records := [][]string{csvHead}
	for _, r := range d.results {
		records = append(records, r.record())
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(records); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func (r *result) record() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
	o, p, failed := r.Outcome, r.plan, ""
	if r.err != nil {
		o, failed = &hitratio.Outcome{}, r.err.Error()
	}
	return []string{
		r.mode, string(p.Values), p.Payload, fmt.Sprint(p.Writes), p.Load, fmt.Sprint(p.Percent), r.store,
		decimal(o.Ratio()), decimal(o.ByteRatio()),
		number(o.Requests), number(o.Hits), number(o.Refused),
		number(int64(p.Copies)), number(int64(p.Keys)), number(int64(p.EntryBytes())), decimal(p.Stretch),
		number(int64(p.Entries())), number(p.Footprint), number(p.Budget),
		number(int64(o.Nominal)), number(o.Held), number(o.Memory), number(o.Peak), decimal(r.off),
		number(int64(r.replays)), decimal(o.Seconds),
		number(o.Beside), number(o.BesideHits), failed,
	}
}

// drawCharts draws the means of each section, and each load against one store.
func (d *document) drawCharts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write charts: %w", err)
	}
	for _, s := range d.sections() {
		base := filepath.Join(dir, s.fileName())
		if s.late {
			if err := d.drawLate(&s, base+"-late.svg"); err != nil {
				return err
			}
			continue
		}
		if err := d.drawMeans(&s, base+"-mean.svg", objectRatio, "hit ratio, %"); err != nil {
			return err
		}
		if s.values == hitratio.Sized {
			if err := d.drawMeans(&s, base+"-bytes.svg", byteRatio, "byte hit ratio, %"); err != nil {
				return err
			}
		}
		if err := d.drawLoads(&s, base+"-loads.svg"); err != nil {
			return err
		}
	}
	return nil
}

// fileName is how the names of the charts of s begin.
func (s *section) fileName() string {
	name := fmt.Sprintf("hitratio-%s-%s", s.mode, s.values)
	if s.payload() != "" {
		name += "-" + s.payload()
	}
	if w := s.writes(); w > 0 {
		name += fmt.Sprintf("-writes-%v", w)
	}
	return name
}

// drawMeans draws the means over all loads, for each size.
func (d *document) drawMeans(
	s *section, file string, of func(*hitratio.Outcome) float64, unit string,
) error {
	stores, plans := d.options.storeNames(), s.plans()
	t := table.New("", stores, nil)
	for _, p := range plans {
		t.Add("", s.figures(p, stores, of))
	}
	var groups []string
	for _, percent := range d.options.sizes {
		groups = append(groups, fmt.Sprintf("%v %% of the footprint", percent))
		t.AddMeans("", func(i int) bool { return plans[i].Percent == percent })
	}
	var series []chart.Series
	for i, name := range stores {
		line := chart.Series{Name: name}
		for _, mean := range t.Foot {
			line.Values = append(line.Values, mean.Values[i])
		}
		series = append(series, line)
	}
	return chart.Bars(file, s.title(), unit, true, groups, series)
}

// drawLate draws how many of the late reads are hits.
func (d *document) drawLate(s *section, file string) error {
	stores := d.options.storeNames()
	series := make([]chart.Series, len(stores))
	var groups []string
	for _, p := range s.plans() {
		groups = append(groups, p.Load)
		for i, figure := range s.figures(p, stores, objectRatio) {
			series[i].Name = stores[i]
			series[i].Values = append(series[i].Values, figure)
		}
	}
	return chart.Bars(file, s.title(), "late reads that are hits, %", true, groups, series)
}

// drawLoads draws how far each store is from one, on every load: from the last one, LRU, or
// with a payload from the first one, which has no cold part.
func (d *document) drawLoads(s *section, file string) error {
	stores, plans := d.options.storeNames(), s.plans()
	if len(stores) == 1 {
		return nil // nothing to compare with
	}
	than := len(stores) - 1
	shown := stores[:than]
	if s.payload() != "" {
		than, shown = 0, stores // at 0, so that all have the colors of the other charts
	}
	series := make([]chart.Series, len(shown))
	var rows []string
	for _, p := range plans {
		rows = append(rows, p.String())
		base := s.figures(p, stores[than:than+1], objectRatio)[0]
		for i, figure := range s.figures(p, shown, objectRatio) {
			series[i].Name = shown[i]
			series[i].Values = append(series[i].Values, figure-base)
		}
	}
	return chart.Dots(file, s.title(), "hit ratio above that of "+stores[than]+", points", rows,
		series)
}
