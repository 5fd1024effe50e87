// Command hitratio replays recorded traces and synthetic loads read-through on ringcache and its
// rivals, and prints their hit ratios: at equal capacity in bytes of keys and values, or at equal
// memory of the process. Each replay has its own process.
//
//	go run ./cmd/hitratio -loads zipf-0.99,loops -sizes 10
//	go run ./cmd/hitratio -traces DIR -csv result.csv
//	go run ./cmd/hitratio -publish -traces DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/publish"
	"github.com/ringcache/ringcache/bench/trace"
)

// The workloads of some of the published sets. At 1 % cloudphysics_io and orm_busy have too few
// entries. With values of 100 bytes cloudphysics_w106 and orm_busy would need 42 and 130 million
// requests.
const (
	fewer    = "lirs_2_pools,lirs_cs,lirs_multi1,lirs_multi2,lirs_ps," + various
	various  = "arc_oltp,bu_web98,ibm_docker,mooncake_conversation,scarab_recs,web07"
	updating = various + ",zipf-0.7,zipf-0.9,zipf-1.1,churn"
)

// published are the sets of replays that docs/hitratio.md shows, as flags.
var published = [][]string{
	{"-sizes", "10,30", "-rounds", "3"},
	{"-sizes", "1", "-rounds", "3", "-loads", fewer + ",cloudphysics_w106",
		"-stores", "ringcache,otter,theine,golang-lru"},
	{"-mode", "memory", "-sizes", "30", "-values", "100", "-loads", fewer + ",cloudphysics_io"},
	longer("300"), longer("1000"), longer("3000"), longer("10000"),
	updates("0.2"), updates("0.5"),
	{"-loads", "late", "-values", "1000", "-budget", "33",
		"-stores", "ringcache,ringcache-fifo,otter,theine,fastcache,freecache"},
	{"-mode", "memory", "-sizes", "10,30", "-payload", "json", "-max-value", "1600",
		"-max-requests", "2"},
}

func longer(values string) []string {
	return []string{"-mode", "memory", "-sizes", "30", "-values", values,
		"-loads", fewer + ",cloudphysics_io", "-stores", "ringcache,otter,theine,freecache,fastcache"}
}

func updates(share string) []string {
	return []string{"-sizes", "10,30", "-writes", share, "-loads", updating,
		"-stores", "ringcache,otter,theine,fastcache"}
}

func main() { cli.Main("hitratio", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, hitratio.Run); is {
		return err
	}
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if o.publish {
		return o.publishAll(ctx, "..", published, stderr)
	}
	rows, err := replay(ctx, o, []*options{o}, stderr) // what is there is printed all the same
	_, writeErr := io.WriteString(stdout, publish.HitRatios(rows))
	return errors.Join(err, writeErr)
}

// publishAll replays what the data below root lacks of the sets, and makes the pages from it.
func (o *options) publishAll(
	ctx context.Context, root string, sets [][]string, stderr io.Writer,
) error {
	if _, err := trace.Sources(o.traces); err != nil {
		return err
	}
	o.csv = filepath.Join(root, publish.HitData)
	var all []*options
	for _, set := range sets {
		args := slices.Concat(set, []string{"-traces", o.traces, "-p", strconv.Itoa(o.workers)})
		parsed, err := parseOptions(args, stderr)
		if err != nil {
			return fmt.Errorf("published set %v: %w", set, err)
		}
		all = append(all, parsed)
	}
	if _, err := replay(ctx, o, all, stderr); err != nil {
		return err
	}
	run, err := publish.Read(filepath.Join(root, publish.Data))
	if err != nil {
		return err
	}
	return run.Update(root)
}
