package ringcache

import (
	"context"
	"sync"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Hooks for the tests of other packages.
func init() {
	hookShapes()
	hookParts()
	hookSteps()
	hookCompression()
	hookLoads()
	hookNamespaces()
	hookSnapshots()
}

func hookShapes() {
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
}

func hookParts() {
	testhook.Shared = func(c any) *store.Shared { return c.(*Cache).shared }
	testhook.Counters = func(c any) *stripe.Counters { return &c.(*Cache).counters }
	testhook.Mask = func(c any) *uint64 { return &c.(*Cache).mask }
	testhook.Arena = func(c any) *sync.Mutex { return &c.(*Cache).arena.mu }
	testhook.BucketOf = func(c any, i int) testhook.Bucket {
		b := c.(*Cache).nth(i)
		return testhook.Bucket{Store: &b.Store, Mu: &b.mu, Seq: &b.seq}
	}
	testhook.Unfinished = func(c any) bool { return c.(*Cache).sizing.unfinished }
}

func hookSteps() {
	testhook.Change = func(cache any, bucket int, fn func(*store.Store)) {
		c := cache.(*Cache)
		var w write
		defer c.notify(&w)
		b := c.nth(bucket)
		b.lock()
		defer b.unlockFor(&w)
		fn(&b.Store)
	}
	testhook.Write = func(cache any, of store.Write) error {
		c := cache.(*Cache)
		of.Hash = c.shared.HashOf(of.Key, of.Kind)
		return c.put(&write{Write: of}, "set")
	}
	testhook.WriteMeasured = func(cache any, of store.Write, large bool) (resized bool) {
		c := cache.(*Cache)
		of.Hash = c.shared.HashOf(of.Key, of.Kind)
		set := c.setSmall
		if large {
			set = c.setLarge
		}
		return set(c.bucket(of.Hash), &write{Write: of}) == errResized
	}
	testhook.IsLarge = func(c any, n int) bool { return c.(*Cache).shared.IsLarge(n) }
	testhook.ReadLocked = func(cache any, k []byte) {
		c := cache.(*Cache)
		k, h := c.key(nil, k)
		b := c.bucket(h)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.read(nil, k, h, c.counters.Here(), getMode)
	}
	testhook.Resize = func(c any, maxBytes int) bool { return c.(*Cache).resize(maxBytes) }
	testhook.Overlaps = overlaps
}

func hookCompression() {
	testhook.CompressQueue = func(c any, bucket int, w *store.Waiting) {
		c.(*Cache).buckets[bucket].compressQueue(w)
	}
	testhook.CompressBucket = func(c any, bucket int, w *store.Waiting) {
		c.(*Cache).compressBucket(int32(bucket), w)
	}
	testhook.RenewDicts = func(c any) { c.(*Cache).shared.Compression.Renew() }
}

func hookLoads() {
	testhook.Waiting = func(cache any, k []byte) int {
		c := cache.(*Cache)
		k, h := c.key(nil, k)
		b := c.bucket(h)
		b.mu.Lock()
		defer b.mu.Unlock()
		if f := b.calls.Find(k, h); f != nil {
			return f.Waiters
		}
		return -1
	}
	testhook.Keep = func(cache any, k, v []byte, ttl time.Duration, err error) {
		c := cache.(*Cache)
		k, h := c.key(nil, k)
		f := c.bucket(h).calls.Add(k, h, singleflight.NewGroup(func() {}))
		f.Waiters++
		f.Result.loaded = loaded{Value: v, TTL: ttl, Err: err}
		c.storeResult(f)
	}
	testhook.LoadTwice = func(
		cache any, k []byte, between func(), load any,
	) (done <-chan struct{}, same bool) {
		c := cache.(*Cache)
		g := &loadGroup{caller: context.Background(), byKey: map[string]*loadCall{}}
		first, _, _ := c.join(g, nil, k, c.shared.Hash(k))
		between()
		second, _, _ := c.join(g, nil, k, c.shared.Hash(k))
		g.start(c.engine, load.(batchLoadFunc))
		return first.Done, first == second
	}
}

func hookNamespaces() {
	testhook.OfNamespace = func(namespace any) testhook.Namespace {
		n := namespace.(*Cache)
		s := n.space
		return testhook.Namespace{
			Cache: &Cache{engine: n.engine}, Entry: s.entry, Generation: &s.generation, Mu: &s.mu,
			AppendKey: func(dst, k []byte) []byte { return append(n.start(dst), k...) },
		}
	}
	testhook.KeyOf = func(cache any, k []byte) ([]byte, uint64) { return cache.(*Cache).key(nil, k) }
	testhook.Namespaces = func(c any) (n int) {
		c.(*Cache).spaces.byName.Range(func(any, any) bool { n++; return true })
		return n
	}
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
