package ringcache

import (
	"context"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Tests of other packages make caches of any shape, and look into them. What is here is linked into
// every program, so it calls nothing that a program may do without.
func init() {
	testhook.Default = func(maxBytes int) testhook.Shape {
		g := defaultGeometry(maxBytes)
		return testhook.Shape{
			Buckets: g.buckets, ChunkSize: g.chunkSize, PosBits: g.posBits, Seed: g.seed,
			Memory: g.mem, Machine: g.machine,
		}
	}
	testhook.New = func(options any, s testhook.Shape) (any, error) {
		o := options.(Options)
		g := geometry{
			settings: settings{machine: s.Machine},
			maxBytes: o.MaxBytes, buckets: s.Buckets, chunkSize: s.ChunkSize,
			posBits: s.PosBits, seed: s.Seed, mem: s.Memory, now: s.Elapsed,
			coldShare: s.ColdShare, byHand: s.ByHand,
		}
		c, err := g.open(&o)
		return c, err
	}
	testhook.PartsOf = func(cache any) testhook.Parts {
		c := cache.(*Cache)
		p := testhook.Parts{
			Shared: c.shared, Counters: &c.counters, Mask: &c.mask, Arena: &c.arena.mu,
			Unfinished: &c.sizing.unfinished,
			Whole:      &Cache{engine: c.engine},
			Key:        func(k []byte) ([]byte, uint64) { return c.key(nil, k) },
			Bucket: func(i int) testhook.Bucket {
				b := c.nth(i)
				return testhook.Bucket{Store: &b.Store, Mu: &b.mu, Seq: &b.seq}
			},
			Waiting: func(k []byte) int {
				k, h := c.key(nil, k)
				b := c.bucket(h)
				b.mu.Lock()
				defer b.mu.Unlock()
				if f := b.calls.Find(k, h); f != nil {
					return f.Waiters
				}
				return -1
			},
		}
		if c.space != nil {
			p.Entry, p.Generation, p.SpaceMu = c.space.entry, &c.space.generation, &c.space.mu
		}
		return p
	}
	hookSnapshots()
}

func hookSnapshots() {
	testhook.Saver = func(
		ctx context.Context, c any, passes []snapshot.Pass,
	) *snapshot.Saver {
		return c.(*Cache).newSaver(ctx, passes)
	}
	testhook.WalkerOf = func(
		cache any, at clock.Wall, out *snapshot.Worker, between func(),
	) testhook.Walker {
		c := cache.(*Cache)
		w := &walker{c: c.engine, clock: at, Worker: out, between: between}
		return testhook.Walker{
			Part: w.part,
			Step: func(
				bucket int, at uint64, p snapshot.Pass, done *snapshot.Cells,
			) (next uint64, others [][]byte, err error) {
				w.long = w.long[:0]
				next, err = w.step(c.nth(bucket), at, p, done)
				for _, k := range w.long {
					others = append(others, k.key)
				}
				return next, others, err
			},
			CopyLong: func(bucket int, k []byte, n int) (whole bool) {
				w.longer.Bytes = make([]byte, 0, n)
				h := c.shared.Hash(k)
				_, _, whole = w.copyLong(c.nth(bucket), longKey{key: k}, h, store.StepBytes)
				return whole
			},
		}
	}
	testhook.Restore = func(c any, s *snapshot.Contents) error { return c.(*Cache).restore(s) }
	testhook.RestoreAt = func(cache any, at time.Time) func(*snapshot.Ref, []byte) error {
		c := cache.(*Cache)
		t := &restorer{c: c.engine, names: generations{}, clock: c.shared.Wall(at), timed: true}
		return t.restore
	}
}
