package ringcache

import (
	"context"

	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Tests of other packages make caches of any shape, and look into them. What is here is linked into
// every program, so it calls nothing that a program may do without.
func init() {
	testhook.Default = func(maxBytes int) testhook.Shape {
		g := geometryFor(Options{MaxBytes: maxBytes})
		return testhook.Shape{
			Buckets: g.buckets, ChunkSize: g.chunkSize, PosBits: g.posBits, Seed: g.seed,
			Memory: g.mem, Machine: g.machine,
		}
	}
	testhook.New = func(options any, s testhook.Shape) (any, error) {
		g := geometry{
			Options: options.(Options), machine: s.Machine,
			buckets: s.Buckets, chunkSize: s.ChunkSize,
			posBits: s.PosBits, seed: s.Seed, mem: s.Memory, now: s.Elapsed,
			coldShare: s.ColdShare, byHand: s.ByHand,
		}
		c, err := g.open()
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
				if f := b.calls.Find(k); f != nil {
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
	testhook.WalkerOf = func(cache any, out *snapshot.Worker, between func()) testhook.Walker {
		c := cache.(*Cache)
		s := c.newSaving(context.Background())
		w := &walker{saving: s, Worker: out, between: between}
		return testhook.Walker{
			Copy: func(bucket, quarter int) (done bool, later int, err error) {
				done, err = w.copyRecords(c.nth(bucket), bucket, quarter)
				return done, len(w.later), err
			},
			CopyLong: func(bucket int, k []byte, n int) (whole bool) {
				w.Reset()
				key := &laterKey{key: k, size: n}
				return w.copyEntry(c.nth(bucket), key, store.StepBytes) == copyWhole
			},
			End: s.end,
		}
	}
	testhook.Saver = func(
		ctx context.Context, c any, between func(),
	) (s *snapshot.Saver, end func()) {
		all := c.(*Cache).newSaving(ctx)
		all.Walker = func(w *snapshot.Worker) snapshot.Step {
			return (&walker{saving: all, Worker: w, between: between}).step
		}
		return &all.Saver, all.end
	}
	testhook.Restore = func(cache any, s *snapshot.Contents) error {
		c := cache.(*Cache)
		return c.restore(s, c.termsOf(&s.Header))
	}
}
