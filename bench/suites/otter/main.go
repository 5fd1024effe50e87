// Command otter measures what the benchmarks of the cache otter measure: throughput, memory and hit
// ratios. It was written for this project. See the README in this directory.
package main

import (
	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/suites/client"
	"github.com/ringcache/ringcache/bench/suites/drive"
)

func main() {
	p := &harness.Program{
		Name: "otter", Title: "A program of the shape of otter's benchmarks", Package: "./suites/otter",
		Quick: drive.Quick,
		Groups: []harness.Group{
			{
				Name: "throughput", Note: throughputNote,
				Metrics: []string{allOps, readOps, writeOps, hits},
				Loads:   harness.Rows(mixNames(), client.Names, throughput),
			},
			{
				Name: "memory", Note: memoryNote,
				Metrics: []string{heapMB, residentMB, liveMB, held},
				Loads: harness.Rows([]string{"1000", "10000", "100000", "1000000"}, client.Names,
					memory),
			},
			drive.Ratio([]int{1000, 5000, 20_000, 80_000}, true),
		},
	}
	p.Main()
}
