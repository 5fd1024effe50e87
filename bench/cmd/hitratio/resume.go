package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/hitpage"
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
	lines, err := hitpage.Lines(file)
	if err != nil {
		return nil, fmt.Errorf("earlier results: %w", err)
	}
	all := earlier{}
	for _, line := range lines {
		r, key := parseLine(line)
		if err := line.Err(); err != nil {
			return nil, fmt.Errorf("earlier results: %w", err)
		}
		all[key] = r
	}
	return all, nil
}

// parseLine is the inverse of result.record, but for the plan. The bytes of
// the requests are not in a line: their ratio is.
func parseLine(l *hitpage.Line) (r result, key string) {
	key = resultKey(l.Text("mode"), l.Text("values"), l.Text("payload"), l.Text("writes"),
		l.Text("load"), l.Text("percent"), l.Text("store"), l.Text("budget_bytes"))
	count := func(column string) int64 { return int64(l.Number(column)) }
	const scale = 1_000_000 // bytes that stand for all
	r.Outcome = &hitratio.Outcome{
		Counts: hitratio.Counts{
			Requests: count("requests"), Hits: count("hits"), Refused: count("refused"),
			Beside: count("beside_requests"), BesideHits: count("beside_hits"),
			Bytes: scale, HitBytes: int64(l.Number("byte_hit_ratio")/100*scale + 0.5),
		},
		Nominal: int(count("max_bytes")), Held: count("held_bytes"),
		Memory: count("memory_bytes"), Peak: count("peak_bytes"), Seconds: l.Number("seconds"),
	}
	r.store, r.rounds, r.spread = l.Text("store"), int(count("rounds")), l.Number("spread")
	r.off, r.replays, r.date = l.Number("off"), int(count("replays")), l.Text("date")
	return r, key
}
