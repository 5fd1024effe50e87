package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/hitpage"
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
	{"-mode", "memory", "-sizes", "30", "-values", "300,1000,3000,10000",
		"-loads", fewer + ",cloudphysics_io", "-stores", "ringcache,otter,theine,freecache,fastcache"},
	{"-sizes", "10,30", "-writes", "0.2", "-loads", updating,
		"-stores", "ringcache,otter,theine,fastcache"},
	{"-sizes", "10,30", "-writes", "0.5", "-loads", updating,
		"-stores", "ringcache,otter,theine,fastcache"},
	{"-loads", "late", "-values", "1000", "-budget", "33",
		"-stores", "ringcache,ringcache-fifo,otter,theine,fastcache,freecache"},
	{"-mode", "memory", "-sizes", "10,30", "-payload", "json", "-max-value", "1600",
		"-max-requests", "2"},
}

// publication is what the flags say that go with -publish.
type publication struct {
	root, traces string
	pages        bool     // no replays
	renew        []string // stores
	workers      int
	sets         [][]string
}

func parsePublication(args []string, stderr io.Writer) (*publication, error) {
	p := &publication{sets: published}
	flags := flag.NewFlagSet("hitratio -publish", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Bool("publish", false, "replay what docs/data lacks, and write data, page and charts")
	flags.BoolVar(&p.pages, "pages", false, "make page and charts from the data, without replays")
	flags.StringVar(&p.root, "root", "..", "`directory` of the repository")
	flags.StringVar(&p.traces, "traces", os.Getenv(trace.Env),
		"`directory` of recorded traces; by default that of "+trace.Env)
	renew := flags.String("renew", "", "`stores` that are replayed although the data has them")
	flags.IntVar(&p.workers, "p", runtime.GOMAXPROCS(0), "how many replays run at once")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	p.renew = strings.Split(*renew, ",")
	return p, nil
}

// publishAll replays what the data lacks, and makes the pages from it.
func publishAll(ctx context.Context, args []string, stderr io.Writer) error {
	p, err := parsePublication(args, stderr)
	if err != nil {
		return err
	}
	if !p.pages {
		if err := p.replay(ctx, stderr); err != nil {
			return err
		}
	}
	data, err := hitpage.Read(filepath.Join(p.root, hitpage.File))
	if err != nil {
		return err
	}
	if err := data.Update(p.root); err != nil {
		return err
	}
	run, err := publish.Read(filepath.Join(p.root, publish.Data))
	if err != nil {
		return err
	}
	return run.Update(p.root) // the README has two lines of hit ratios
}

// replay writes the data, with the rows that it has. What an interrupted run has goes to another
// file, from which the next run goes on.
func (p *publication) replay(ctx context.Context, stderr io.Writer) error {
	if _, err := trace.Sources(p.traces); err != nil {
		return err
	}
	file := filepath.Join(p.root, hitpage.File)
	partial := file + ".partial"
	had, err := p.earlier(file, partial)
	if err != nil {
		return err
	}
	var results []result
	for _, set := range p.sets {
		found, err := p.replaySet(ctx, set, had, stderr)
		results = append(results, found...)
		if err != nil {
			return errors.Join(err, writeCSV(partial, results))
		}
	}
	d := document{results: results}
	if err := d.failure(); err != nil {
		return errors.Join(err, writeCSV(partial, results))
	}
	if err := writeCSV(file, results); err != nil {
		return err
	}
	return os.RemoveAll(partial)
}

// earlier returns the rows of the data that are not to be renewed, and those of an interrupted
// run.
func (p *publication) earlier(file, partial string) (earlier, error) {
	all := earlier{}
	for _, name := range []string{file, partial} {
		found, err := readEarlier(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		maps.DeleteFunc(found, func(_ string, r result) bool {
			return name == file && slices.Contains(p.renew, r.store)
		})
		maps.Copy(all, found)
	}
	return all, nil
}

func (p *publication) replaySet(
	ctx context.Context, set []string, had earlier, stderr io.Writer,
) ([]result, error) {
	args := slices.Concat(set, []string{"-traces", p.traces, "-p", strconv.Itoa(p.workers)})
	o, err := parseOptions(args, stderr)
	if err != nil {
		return nil, err
	}
	o.earlier = had
	c := &comparison{options: o, out: stderr}
	if err := c.plan(ctx); err != nil {
		return nil, err
	}
	err = c.replay(ctx)
	return c.results, err
}
