package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"strconv"

	"github.com/ringcache/ringcache/bench/hitratio"
)

var csvHead = []string{
	"mode", "values", "payload", "writes", "load", "percent", "store", "hit_ratio", "byte_hit_ratio",
	"requests", "hits", "refused",
	"copies", "keys", "entry_bytes", "stretch", "entries", "footprint_bytes", "budget_bytes",
	"max_bytes", "held_bytes", "memory_bytes", "peak_bytes", "off", "replays", "seconds",
	"rounds", "spread",
	"beside_requests", "beside_hits", "date", "error",
}

func writeCSV(file string, results []result) error {
	records := [][]string{csvHead}
	for _, r := range results {
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
		number(int64(r.rounds)), decimal(r.spread),
		number(o.Beside), number(o.BesideHits), r.date, failed,
	}
}
