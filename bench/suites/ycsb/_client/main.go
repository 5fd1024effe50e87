// Command ycsb runs the workloads of go-ycsb, with its own generators, on caches in this process.
// One process loads the records and then runs A, B, C, F and D in that order, as YCSB recommends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

const threads = 2

// options are the flags.
type options struct {
	store    string
	rows     string
	records  int
	ops      int
	dir      string
	zipfian  bool
	measured bool
	check    bool
}

func main() {
	var o options
	flag.StringVar(&o.store, "store", "ringcache", "the `name` of the cache")
	flag.StringVar(&o.rows, "rows", "encoded", "how records are stored: encoded, plain or objects")
	flag.IntVar(&o.records, "records", 1000, "number of records")
	flag.IntVar(&o.ops, "ops", 1000, "operations of each workload")
	flag.StringVar(&o.dir, "workloads", "workloads", "the `directory` with the files of go-ycsb")
	flag.BoolVar(&o.zipfian, "zipfian", false, "Zipfian keys in A, B, C and F, as in YCSB")
	flag.BoolVar(&o.measured, "measured", false, "let go-ycsb record the latency of each operation")
	flag.BoolVar(&o.check, "check", false, "check every record that is read")
	flag.Parse()
	results := os.Stdout
	os.Stdout = os.Stderr // on which go-ycsb logs
	if err := o.run(results); err != nil {
		fmt.Fprintln(os.Stderr, "ycsb:", err)
		os.Exit(1)
	}
}

func (o options) run(w io.Writer) error {
	db, err := open(o)
	if err != nil {
		return err
	}
	defer db.Close()
	// One more record: go-ycsb's Zipfian generator draws the number after the last one as well.
	load := o.phase("workloada", map[string]string{
		"dotransactions": "false",
		"insertcount":    fmt.Sprint(o.records + 1),
	})
	if err := o.do(w, "load", load, o.records, db); err != nil {
		return err
	}
	for _, letter := range strings.Split("abcfd", "") {
		set := map[string]string{}
		if o.zipfian && letter != "d" {
			set["requestdistribution"] = "zipfian"
		}
		p := o.phase("workload"+letter, set)
		name := strings.ToUpper(letter) + " " + p.MustGetString("requestdistribution")
		if err := o.do(w, name, p, o.ops, db); err != nil {
			return err
		}
	}
	if n := db.misses.Load(); n > 0 && o.store != "fastcache" {
		return fmt.Errorf("%d records were absent", n) // fastcache's ring drops the oldest ones
	}
	return nil
}

// phase returns the properties in a file of go-ycsb, with this program's sizes.
func (o options) phase(file string, set map[string]string) *properties.Properties {
	p := properties.MustLoadFile(filepath.Join(o.dir, file), properties.UTF8)
	set["recordcount"] = fmt.Sprint(o.records)
	if set["insertcount"] != "" {
		set["recordcount"] = set["insertcount"]
	}
	set["operationcount"] = fmt.Sprint(o.ops)
	set["threadcount"] = fmt.Sprint(threads)
	set["measurement.interval"] = "3600"
	set["dataintegrity"] = fmt.Sprint(o.check)
	set["silence"] = "false"
	for key, value := range set {
		if _, _, err := p.Set(key, value); err != nil {
			panic(err) // the value has a ${}
		}
	}
	return p
}

// do runs a workload. It writes two lines with its name and the cache: the time of one operation
// for its goroutine, and how many of a million operations found no record.
func (o options) do(
	w io.Writer, name string, p *properties.Properties, ops int, db *database,
) error {
	measurement.InitMeasure(p)
	creator := ycsb.GetWorkloadCreator("core")
	if creator == nil {
		return errors.New("go-ycsb has no core workload")
	}
	workload, err := creator.Create(p)
	if err != nil {
		return fmt.Errorf("make workload %s: %w", name, err)
	}
	defer workload.Close()
	var target ycsb.DB = db
	if o.measured {
		target = client.DbWrapper{DB: db}
	}
	before := db.misses.Load()
	begin := time.Now()
	client.NewClient(p, workload, target).Run(context.Background())
	took := time.Since(begin)
	column := o.store
	if o.rows == "objects" {
		column += ", objects"
	}
	nanoseconds := float64(took.Nanoseconds()) * threads / float64(ops)
	fmt.Fprintf(w, "time\t%s\t%s\t%.0f\n", name, column, nanoseconds)
	misses := float64(db.misses.Load()-before) * 1e6 / float64(ops)
	fmt.Fprintf(w, "absent\t%s\t%s\t%.0f\n", name, column, misses)
	return nil
}
