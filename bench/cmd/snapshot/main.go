// Command snapshot compares the snapshots of ringcache with those of fastcache: how long
// it takes to save and to load, how many bytes lie on the disk, and how long the slowest of
// a thousand Sets and Gets takes while a save is under way.
//
//	go run ./cmd/snapshot
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/VictoriaMetrics/fastcache"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/machine"
)

func main() { cli.Main("snapshot", run) }

var format = load.Format{KeySize: 16, ValueSize: 100}

// cache is what both have.
type cache interface {
	HasGet(dst, k []byte) ([]byte, bool)
}

// rival is a cache that is compared.
type rival struct {
	name string
	make func(maxBytes int) cache
	save func(c cache, path string, workers int) error
	load func(path string) (cache, error)
	set  func(c cache, k, v []byte)
	end  func(c cache)
}

var rivals = []rival{
	{
		name: "ringcache",
		make: func(n int) cache { return ringcache.New(n) },
		save: func(c cache, path string, workers int) error {
			o := ringcache.SaveOptions{Concurrency: workers}
			return c.(*ringcache.Cache).Save(context.Background(), path, o)
		},
		load: func(path string) (cache, error) { return ringcache.LoadFromFile(path) },
		set:  func(c cache, k, v []byte) { _ = c.(*ringcache.Cache).Set(k, v) },
		end:  func(c cache) { _ = c.(*ringcache.Cache).Close() },
	},
	{
		name: "fastcache",
		make: func(n int) cache { return fastcache.New(n) },
		save: func(c cache, path string, workers int) error {
			return c.(*fastcache.Cache).SaveToFileConcurrent(path, workers)
		},
		load: func(path string) (cache, error) { return fastcache.LoadFromFile(path) },
		set:  func(c cache, k, v []byte) { c.(*fastcache.Cache).Set(k, v) },
		end:  func(c cache) { c.(*fastcache.Cache).Reset() },
	},
}

// task is what a process measures.
type task struct {
	Rival            string
	Entries, Workers int
	Dir              string
	Load             bool // what another process has saved in Dir
}

// figures are what it has found.
type figures struct {
	Save, Load float64 // seconds
	Size       float64 // bytes
	Set, Get   float64 // ns, 99.9 %, during a save
	Samples    int
}

func (t task) do() (f figures, err error) {
	path := filepath.Join(t.Dir, "snapshot")
	r := rivals[slices.IndexFunc(rivals, func(r rival) bool { return r.name == t.Rival })]
	if t.Load {
		start := time.Now()
		c, err := r.load(path)
		if err != nil {
			return f, err
		}
		f.Load = time.Since(start).Seconds()
		defer r.end(c)
		return f, t.verify(c)
	}
	c := r.make(max(t.Entries*(2*format.Bytes()+64), 32<<20))
	key, value := make([]byte, format.KeySize), make([]byte, format.ValueSize)
	for id := range uint64(t.Entries) {
		format.Key(key, id)
		format.Value(value, id, 0)
		r.set(c, key, value)
	}
	runtime.GC()
	start := time.Now()
	if err := r.save(c, path, t.Workers); err != nil {
		return f, err
	}
	f.Save = time.Since(start).Seconds()
	if f.Size, err = sizeOf(path); err != nil {
		return f, err
	}
	defer r.end(c)
	return f, t.traffic(r, c, path, &f)
}

// measure saves in one process and loads in another.
func (t task) measure(ctx context.Context) (f figures, err error) {
	if t.Dir, err = os.MkdirTemp(t.Dir, "snapshot"); err != nil {
		return f, err
	}
	defer os.RemoveAll(t.Dir)
	if err := cli.Again(ctx, t, &f); err != nil {
		return f, err
	}
	t.Load = true
	var loaded figures
	err = cli.Again(ctx, t, &loaded)
	f.Load = loaded.Load
	return f, err
}

// traffic times the Sets of one goroutine and the Gets of another while a save is under
// way.
func (t task) traffic(r rival, c cache, path string, f *figures) error {
	var saved atomic.Bool
	var group sync.WaitGroup
	var errs [3]error
	var times [2]*hdrhistogram.Histogram
	for i := range times {
		times[i] = hdrhistogram.New(1, int64(time.Minute), 3)
		group.Add(1)
		go func() {
			defer group.Done()
			key, value := make([]byte, format.KeySize), make([]byte, format.ValueSize)
			var buf []byte
			rnd := load.NewRand(uint64(i))
			for !saved.Load() && errs[i] == nil {
				id := rnd.Below(uint64(t.Entries))
				format.Key(key, id)
				format.Value(value, id, 0)
				start := time.Now()
				if i == 0 {
					r.set(c, key, value)
				} else {
					buf, _ = c.HasGet(buf[:0], key)
				}
				errs[i] = times[i].RecordValue(int64(time.Since(start)))
			}
		}()
	}
	errs[2] = r.save(c, path, t.Workers)
	saved.Store(true)
	group.Wait()
	f.Set, f.Get = float64(times[0].ValueAtQuantile(99.9)), float64(times[1].ValueAtQuantile(99.9))
	f.Samples = int(times[0].TotalCount())
	return errors.Join(errs[:]...)
}

// verify checks each byte of what was loaded.
func (t task) verify(c cache) error {
	key := make([]byte, format.KeySize)
	var buf []byte
	missing := 0
	for id := range uint64(t.Entries) {
		format.Key(key, id)
		v, ok := c.HasGet(buf[:0], key)
		if buf = v; !ok {
			missing++
			continue
		}
		if _, err := format.Verify(v, id); err != nil {
			return err
		}
	}
	if missing > t.Entries/1000 {
		return fmt.Errorf("%s: %d of %d entries have not come back", t.Rival, missing, t.Entries)
	}
	return nil
}

// sizeOf returns the bytes of a file, or of all files in a folder.
func sizeOf(path string) (n float64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += float64(info.Size())
		}
		return err
	})
	return n, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, task.do); is {
		return err
	}
	var t task
	fset := flag.NewFlagSet("snapshot", flag.ContinueOnError)
	fset.SetOutput(stderr)
	fset.IntVar(&t.Entries, "entries", 4_000_000, "entries of 16 + 100 bytes")
	fset.IntVar(&t.Workers, "workers", 2, "goroutines that save")
	fset.StringVar(&t.Dir, "dir", "", "`folder` for the files; by default that for temporary files")
	rounds := fset.Int("rounds", 5, "measurements of which the median counts")
	file := fset.String("o", "", "write the Markdown to this `file` instead of standard output")
	if err := fset.Parse(args); err != nil {
		return err
	}
	if fset.NArg() > 0 || t.Entries < 1 || t.Workers < 1 || *rounds < 1 {
		return errors.New("-entries, -workers and -rounds must be above 0, and no argument may follow")
	}
	all := map[string][]figures{}
	for round := range *rounds {
		for i := range rivals { // in turns
			t.Rival = rivals[(i+round)%len(rivals)].name
			f, err := t.measure(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(stderr, "round %d, %s: %+v\n", round+1, t.Rival, f)
			all[t.Rival] = append(all[t.Rival], f)
		}
	}
	return cli.Write(*file, stdout, document(t, all, args))
}

// document returns the medians, and their ratios.
func document(t task, all map[string][]figures, args []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Snapshots\n\n%s\n", machine.This().Header(
		strings.TrimSpace("snapshot "+strings.Join(args, " ")), []string{"ringcache", "fastcache"}))
	fmt.Fprintf(&b, "%d entries of %v, %d goroutines save, medians of %d rounds.\n\n",
		t.Entries, format, t.Workers, len(all["ringcache"]))
	b.WriteString("| | ringcache | fastcache | ratio |\n|---|--:|--:|--:|\n")
	for _, row := range []struct {
		name string
		of   func(f figures) float64
	}{
		{"save, s", func(f figures) float64 { return f.Save }},
		{"load, s", func(f figures) float64 { return f.Load }},
		{"size, MB", func(f figures) float64 { return f.Size / (1 << 20) }},
		{"99.9 % of Sets during a save, us", func(f figures) float64 { return f.Set / 1000 }},
		{"99.9 % of Gets during a save, us", func(f figures) float64 { return f.Get / 1000 }},
	} {
		ours, theirs := median(all["ringcache"], row.of), median(all["fastcache"], row.of)
		fmt.Fprintf(&b, "| %s | %.3g | %.3g | %.2f |\n", row.name, ours, theirs, ours/theirs)
	}
	return b.Bytes()
}

func median(all []figures, of func(f figures) float64) float64 {
	var x []float64
	for _, f := range all {
		x = append(x, of(f))
	}
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
