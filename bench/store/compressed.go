package store

import (
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/s2"
	"github.com/ringcache/ringcache/internal/testhook"
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
		if control {
			o := ringcache.Options{MaxBytes: c.MaxBytes, TTL: c.TTL, Compressor: noCompressor{s2.New()}}
			shape := testhook.Default(c.MaxBytes)
			shape.ColdShare = 0.5
			cache, err := testhook.New(o, shape)
			return ringcacheStore{cache.(*ringcache.Cache)}, err
		}
		s, err := open(c)
		if err == nil && c.Synchronous {
			s = &paced{Store: s}
		}
		return s, err
	}
	return info
}

// noCompressor compresses nothing.
type noCompressor struct{ ringcache.Compressor }

func (noCompressor) BuildDict([][]byte) []byte { return nil }

func (n noCompressor) WithDict([]byte) (ringcache.ValueCompressor, error) { return noValues{}, nil }

type noValues struct{ ringcache.ValueCompressor }

func (noValues) Compress(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

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
