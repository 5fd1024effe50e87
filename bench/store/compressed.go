package store

import (
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/s2"
	"github.com/ringcache/ringcache/internal/pack"
)

// Compressed lists the stores of the comparison of compressed values: without a cold part,
// the control, whose cold part compresses nothing, with one, and rivals.
var Compressed = []Info{
	ringcacheInfo,
	coldVariant("ringcache-control", true),
	coldVariant("ringcache-s2", false),
	fastcacheInfo,
	freecacheInfo,
	otterInfo,
	theineInfo,
}

// coldVariant returns ringcache with a cold part.
func coldVariant(name string, control bool) Info {
	info := ringcacheVariant(name, ringcache.Options{Compressor: s2.New()})
	open := info.New
	info.New = func(c Config) (Store, error) {
		pack.Control = control // of this process, which has no other store
		s, err := open(c)
		if err == nil && !control && c.Synchronous {
			s = &paced{Store: s}
		}
		return s, err
	}
	return info
}

// paced pauses now and then, as the requests of real loads do: a replay on one goroutine is
// faster than any, and would leave no time to compress.
type paced struct {
	Store
	sets int
}

// A pause after each setsInARow Sets leaves some 100,000 a second. With a fifth of the pause a
// replay had 10 points less where most Sets evict, beside another one on two cores.
const (
	setsInARow = 32
	pause      = 200 * time.Microsecond
)

func (p *paced) Set(k, v []byte) error {
	if p.sets++; p.sets%setsInARow == 0 {
		sleep(pause)
	}
	return p.Store.Set(k, v)
}
