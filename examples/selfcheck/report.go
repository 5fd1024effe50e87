package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/ringcache/ringcache"
)

// report prints the table. A MB is 2^20 bytes throughout.
func (w *world) report(out io.Writer) error {
	var cs ringcache.Stats
	w.cache.UpdateStats(&cs)
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	var gc debug.GCStats
	debug.ReadGCStats(&gc)

	rows := []struct{ name, value string }{
		{"files", fmt.Sprint(len(w.files))},
		{"bytes stored", megabytes(w.storedBytes.Load())},
		{"stored", fmt.Sprint(w.stored.Load())},
		{"too large", fmt.Sprint(w.tooLarge.Load())},
		{"unreadable", fmt.Sprint(w.unreadable.Load())},
		{"hits", fmt.Sprint(w.hits.Load())},
		{"misses", fmt.Sprint(w.misses.Load())},
		{"wrong", fmt.Sprint(w.wrong.Load())},
		{"fill time, disk included", fmt.Sprint(w.fillTime.Round(time.Millisecond))},
		{"read and verified",
			fmt.Sprintf("%.0f MB/s", float64(w.readBytes.Load())/mb/w.readTime.Seconds())},
		{"live bytes", megabytes(int64(cs.BytesSize))},
		{"reserved bytes", megabytes(int64(cs.ReservedBytes))},
		{"Go heap", megabytes(int64(ms.HeapAlloc))},
		{"resident memory", residentMemory()},
		{"GC cycles", fmt.Sprint(gc.NumGC)},
		{"GC pauses, total", fmt.Sprint(gc.PauseTotal.Round(time.Microsecond))},
		{"GC pauses, longest", fmt.Sprint(longest(gc.Pause).Round(time.Microsecond))},
	}
	_, err := fmt.Fprintf(out, "%s\ncache of %d MB, %d goroutines, %d rounds\n\n",
		w.cfg.dir, w.cfg.maxBytes/mb, w.cfg.workers, w.cfg.rounds)
	for _, r := range rows {
		if err == nil {
			_, err = fmt.Fprintf(out, "%-24s %12s\n", r.name, r.value)
		}
	}
	return err
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/mb) }

// longest returns the longest pause, or 0 when no collection has run.
func longest(pauses []time.Duration) time.Duration {
	return slices.Max(append(pauses, 0))
}

// residentMemory returns the resident memory of this process as reported by
// Linux; "-" on other systems.
func residentMemory() string {
	statm, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(statm)
	if err != nil || len(fields) < 2 {
		return "-"
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return "-"
	}
	return megabytes(pages * int64(os.Getpagesize()))
}
