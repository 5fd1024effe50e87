package ringcache

import (
	"context"
	_ "unsafe" // for go:linkname

	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Tests and benchmarks make caches of any shape, and look into them. These functions are linked by
// name to package testhook, which does not import this one. Other programs do not contain them.

//go:linkname hookDefault github.com/ringcache/ringcache/internal/testhook.Default
func hookDefault(maxBytes int) testhook.Shape {
	g := geometryFor(Options{MaxBytes: maxBytes})
	return testhook.Shape{
		Buckets: g.config.Buckets, ChunkSize: g.chunkSize, PosBits: g.config.PosBits,
		Seed: g.config.Seed, Memory: g.mem,
	}
}

//go:linkname hookNew github.com/ringcache/ringcache/internal/testhook.New
func hookNew(options any, s testhook.Shape) (any, error) {
	g := geometry{
		Options: options.(Options), machine: s.Machine,
		config:    store.Config{Buckets: s.Buckets, PosBits: s.PosBits, Seed: s.Seed, Elapsed: s.Elapsed},
		chunkSize: s.ChunkSize, mem: s.Memory, cold: cold.Config{Share: s.ColdShare}, byHand: s.ByHand,
	}
	c, err := g.open()
	return c, err
}

//go:linkname hookParts github.com/ringcache/ringcache/internal/testhook.PartsOf
func hookParts(cache any) testhook.Parts {
	c := cache.(*Cache)
	p := testhook.Parts{
		Shared: c.shared, Counters: &c.counters, Mask: &c.mask, Arena: &c.arena.mu,
		Unfinished: &c.sizing.unfinished, CloseNames: c.spaces.file.Close,
		Key: func(k []byte) ([]byte, uint64) { return c.key(nil, k) },
		Bucket: func(i int) testhook.Bucket {
			b := c.nth(i)
			return testhook.Bucket{Store: &b.Store, Mu: &b.mu, Seq: &b.seq}
		},
		Waiting: func(k []byte) int {
			k, h := c.key(nil, k)
			b := c.bucket(h)
			b.mu.Lock()
			defer b.mu.Unlock()
			if f := b.calls.Find(k); f != nil {
				return f.Waiters
			}
			return -1
		},
	}
	if c.space != nil {
		p.Generation = &c.space.generation
	}
	return p
}

//go:linkname hookSaver github.com/ringcache/ringcache/internal/testhook.Saver
func hookSaver(ctx context.Context, c any, between func()) (s *snapshot.Saver, end func()) {
	all := c.(*Cache).newSaving(ctx)
	all.between = between
	return &all.Saver, all.end
}

//go:linkname hookRestore github.com/ringcache/ringcache/internal/testhook.Restore
func hookRestore(cache any, s *snapshot.Contents) error {
	c := cache.(*Cache)
	return c.restore(s, c.termsOf(&s.Header))
}
