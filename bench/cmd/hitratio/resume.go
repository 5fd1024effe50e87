package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/hitratio"
)

// earlier are results of another run, by what they are of.
type earlier map[string]result

// resultKey names the cache of a result. The budget is in it, so that a load of
// the same name and another size is not taken for it.
func resultKey(mode, values, payload, writes, load, percent, store, budget string) string {
	return strings.Join([]string{mode, values, payload, writes, load, percent, store, budget}, "\n")
}

func (r *result) key() string {
	p := r.plan
	return resultKey(r.mode, string(p.Values), p.Payload, fmt.Sprint(p.Writes), p.Load,
		fmt.Sprint(p.Percent), r.store, strconv.FormatInt(p.Budget, 10))
}

// readEarlier reads the file that -csv of another run has written. What failed
// there is left out, and so is replayed.
func readEarlier(file string) (earlier, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read earlier results: %w", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read earlier results: %w", err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], csvHead) {
		return nil, fmt.Errorf("read earlier results: %s has not the columns of this program", file)
	}
	all := earlier{}
	for _, row := range rows[1:] {
		r, key, err := parseRecord(row)
		if err != nil {
			return nil, fmt.Errorf("read earlier results: %s: %w", file, err)
		}
		if r.Outcome != nil {
			all[key] = r
		}
	}
	return all, nil
}

// parseRecord is the inverse of result.record, but for the plan. The bytes of
// the requests are not in a record: their ratio is.
func parseRecord(row []string) (r result, key string, err error) {
	col := func(name string) string { return row[slices.Index(csvHead, name)] }
	key = resultKey(col("mode"), col("values"), col("payload"), col("writes"), col("load"),
		col("percent"), col("store"), col("budget_bytes"))
	if col("error") != "" {
		return r, key, nil
	}
	number := func(name string) float64 {
		v, e := strconv.ParseFloat(col(name), 64)
		if e != nil && err == nil {
			err = fmt.Errorf("column %s: %w", name, e)
		}
		return v
	}
	const scale = 1_000_000 // bytes that stand for all
	r.Outcome = &hitratio.Outcome{
		Counts: hitratio.Counts{
			Requests: int64(number("requests")), Hits: int64(number("hits")),
			Refused: int64(number("refused")),
			Beside:  int64(number("beside_requests")), BesideHits: int64(number("beside_hits")),
			Bytes: scale, HitBytes: int64(number("byte_hit_ratio")/100*scale + 0.5),
		},
		Nominal: int(number("max_bytes")), Held: int64(number("held_bytes")),
		Memory: int64(number("memory_bytes")), Peak: int64(number("peak_bytes")),
		Seconds: number("seconds"),
	}
	r.store, r.rounds, r.spread = col("store"), int(number("rounds")), number("spread")
	r.off, r.replays, r.date = number("off"), int(number("replays")), col("date")
	return r, key, err
}
