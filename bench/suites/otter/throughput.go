package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/suites/client"
	"github.com/ringcache/ringcache/bench/suites/drive"
)

const throughputNote = `8 goroutines, each of which only reads or only writes; a mix is how many of
them write. 32,768 draws from 10,922 keys, Zipf 0.99, in a cache for 32,768 entries: nothing has to
leave. Keys of about 43 bytes, values of about 42. A mix of 50/50 is half of the goroutines, not
half of the operations, so reads and writes are also given apart.`

// Names of figures.
const (
	allOps   = "million operations a second"
	readOps  = "of these, reads"
	writeOps = "of these, writes"
	hits     = "hits, %"
)

const (
	draws      = 1 << 15
	zipfKeys   = draws / 3
	goroutines = 8
)

// writers is the number of goroutines that write, by the name of the mix.
var writers = map[string]int{
	"reads 100 %": 0,
	"reads 75 %":  2,
	"reads 50 %":  4,
	"reads 25 %":  6,
	"reads 0 %":   8,
}

func mixNames() []string {
	return []string{"reads 100 %", "reads 75 %", "reads 50 %", "reads 25 %", "reads 0 %"}
}

func throughput(t harness.Spec) (harness.Metrics, error) {
	keys, values := strings39(uint64(t.Round))
	c, err := client.Open(t.Store, client.Options{
		Capacity: draws, KeySize: len(keys[0]), ValueSize: len(values[0]), Ample: true,
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for i, key := range keys {
		c.Set(key, values[i])
	}
	writing, ok := writers[t.Load]
	if !ok {
		return nil, fmt.Errorf("no mix %q", t.Load)
	}
	r := drive.Traffic{
		Cache: c, Keys: keys, Values: values,
		Readers: goroutines - writing, Writers: writing, Seed: uint64(t.Round),
	}.For(t.Scale.Duration)
	f := harness.Metrics{allOps: (r.Reads + r.Writes) / 1e6}
	if writing < goroutines {
		f[readOps] = r.Reads / 1e6
		f[hits] = 100 * r.Hits
	}
	if writing > 0 {
		f[writeOps] = r.Writes / 1e6
	}
	return f, nil
}

// strings39 returns keys and values of 38 bytes and a number, as many as draws.
func strings39(seed uint64) (keys, values []string) {
	rnd := load.NewRand(seed)
	keyHead, valueHead := strings.Repeat("k", 38), strings.Repeat("v", 37)
	for i, id := range load.ZipfIDs(&rnd, zipfKeys, 0.99, draws) {
		keys = append(keys, keyHead+strconv.Itoa(int(id)))
		values = append(values, valueHead+strconv.Itoa(i))
	}
	return keys, values
}
