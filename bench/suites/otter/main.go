// Command otter measures what the benchmarks of the cache otter measure: throughput, memory and hit
// ratios. It was written for this project. See the README in this directory.
package main

import (
	"github.com/ringcache/ringcache/bench/suites/client"
	"github.com/ringcache/ringcache/bench/suites/drive"
	"github.com/ringcache/ringcache/bench/suites/rounds"
)

func main() {
	rounds.Program{
		Name:  "otter",
		Title: "A program of the shape of otter's benchmarks",
		Parts: []rounds.Part{
			{
				Name:    "throughput",
				Note:    throughputNote,
				Loads:   mixNames(),
				Stores:  client.Names,
				Figures: []string{allOps, readOps, writeOps, hits},
				Do:      throughput,
			},
			{
				Name:    "memory",
				Note:    memoryNote,
				Loads:   []string{"1000", "10000", "100000", "1000000"},
				Stores:  client.Names,
				Figures: []string{heapMB, totalMB, residentMB, liveMB, held},
				Do:      memory,
			},
			drive.Ratio([]int{1000, 5000, 20_000, 80_000}, true),
		},
	}.Main()
}
