package namespace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// restarts is a cache that is left and opened again, with what its namespaces may hold.
type restarts struct {
	t        *testing.T
	rnd      *rand.Rand
	g        ringtest.Shape
	path     string // of its file, or empty
	c        *ringcache.Cache
	n        [2]*ringcache.Cache
	version  uint64
	least    [2]uint64            // older values have been invalidated
	last     [2]map[string]uint64 // the value of each key
	old      []byte               // a snapshot from before
	oldLeast [2]uint64            // least when it was written
	mixed    bool                 // an old snapshot was loaded: deleted keys may be back
	found    int
	warm     int
}

// open opens the cache and its namespaces.
func (r *restarts) open() {
	if r.c = nil; r.path != "" {
		r.c = ringtest.MustOpen(r.t, r.g, r.path)
	} else {
		r.c = ringtest.NewCache(r.g)
	}
}

func (r *restarts) names() {
	r.n = [2]*ringcache.Cache{r.c.Namespace("zero"), r.c.Namespace("one")}
}

// restart leaves the cache and opens it again.
func (r *restarts) restart() {
	var snapshot bytes.Buffer
	if r.path == "" {
		_, err := r.c.WriteSnapshot(&snapshot)
		require.NoError(r.t, err)
	}
	if r.path == "" || r.rnd.IntN(2) == 0 {
		require.NoError(r.t, r.c.Close())
	} else {
		ringtest.Abandon(r.c)
	}
	r.open()
	if r.path == "" {
		_, err := r.c.ReadSnapshot(&snapshot)
		require.NoError(r.t, err)
	}
	r.names()
	before := r.found
	for ns := range r.n {
		for k := range r.last[ns] {
			r.get(ns, []byte(k))
		}
	}
	if r.found > before {
		r.warm++
	}
}

// get fails if it finds what it may not.
func (r *restarts) get(ns int, k []byte) {
	v, ok := r.n[ns].HasGet(nil, k)
	if !ok {
		if !r.mixed {
			delete(r.last[ns], string(k))
		}
		return
	}
	version := binary.LittleEndian.Uint64(v)
	if version <= r.least[ns] || !r.mixed && version != r.last[ns][string(k)] {
		require.Fail(r.t, "a value came back", "version %d of %s, which is %d; %d was invalidated",
			version, k, r.last[ns][string(k)], r.least[ns])
	}
	r.found++
}

func (r *restarts) step() {
	ns, k := r.rnd.IntN(2), fmt.Appendf(nil, "key %d", r.rnd.IntN(300))
	n := r.n[ns]
	switch op := r.rnd.IntN(2000); {
	case op < 4:
		r.restart()
	case op < 20:
		n.Reset()
		r.least[ns] = r.version
		clear(r.last[ns])
	case op < 26:
		var b bytes.Buffer
		_, err := r.c.WriteSnapshot(&b)
		require.NoError(r.t, err)
		r.old, r.oldLeast = b.Bytes(), r.least
	case op < 28 && r.old != nil:
		_, err := r.c.ReadSnapshot(bytes.NewReader(r.old))
		require.NoError(r.t, err)
		r.mixed = true // it brings back what was reset since it was written
		r.least = r.oldLeast
	case op < 200:
		n.Del(k)
		delete(r.last[ns], string(k))
	case op < 1000:
		r.version++
		r.last[ns][string(k)] = r.version
		v := binary.LittleEndian.AppendUint64(nil, r.version)
		require.NoError(r.t, n.Set(k, append(v, make([]byte, r.rnd.IntN(60))...)))
	default:
		r.get(ns, k)
	}
}

// After Reset has returned, no value that was set before is found again: not after the cache was
// closed or left as it is, nor from its snapshots, but those from before.
func TestNamespace_NothingInvalidatedComesBack(t *testing.T) {
	for seed := range uint64(3 * ringtest.Rounds()) {
		for _, file := range []bool{false, true} {
			t.Run(fmt.Sprintf("file=%v/%d", file, seed), func(t *testing.T) {
				r := &restarts{t: t, rnd: ringtest.NewRand(seed), g: ringtest.Tiny(2, 256, 64)}
				if seed%2 == 1 {
					r.g = ringtest.Tiny(8, 1024, 64) // nothing is evicted
				}
				if file {
					r.path = filepath.Join(ringtest.DirInMemory(t), "cache")
				}
				r.last = [2]map[string]uint64{{}, {}}
				r.open()
				r.names()
				for range 5000 {
					r.step()
				}
				require.NoError(t, ringtest.Validate(r.c))
				require.NoError(t, r.c.Close())
				require.Greater(t, r.found, 200)
				require.NotZero(t, r.warm)
			})
		}
	}
}
