//go:build go1.25

package ringbus_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringbus"
)

// model is a service of three instances, whose database has a version of each key. The bus delivers
// late, in any order and repeatedly, loses connections and refuses messages.
//
// In one instance, a read returns the version that the last Del there was about, or a later one,
// and no goroutine sees a version decrease. When all is quiet, each entry has the version of the
// database.
type model struct {
	t         *testing.T
	h         *hub
	instances []*modelInstance
	db        [2 * modelKeys]atomic.Int64 // the second half in a namespace
	quiet     atomic.Bool                 // no writes and no trouble any more
	ended     atomic.Bool

	reads, loads, failed atomic.Int64
}

const modelKeys = 8

type modelInstance struct {
	*instance
	model   *model
	cache   [2]*ringcache.Cache // the whole one, the namespace
	bus     [2]*ringbus.Bus
	deleted [2 * modelKeys]atomic.Int64 // the last version that Del has returned for
}

func modelKey(k int) []byte { return fmt.Append(nil, "key", k%modelKeys) }

func pause(rnd *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(rnd.Int64N(int64(most))))
}

func TestModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
		})
	}
}

func runModel(t *testing.T, seed uint64) {
	m := &model{t: t, h: newHub()}
	m.h.late, m.h.slow = true, 100*time.Millisecond
	var wg sync.WaitGroup
	start := func(n uint64, until *atomic.Bool, f func(rnd *rand.Rand)) {
		wg.Go(func() {
			for rnd := rand.New(rand.NewPCG(seed, n)); !until.Load() && !t.Failed(); {
				f(rnd)
			}
		})
	}
	for n := range uint64(3) {
		i := &modelInstance{model: m, instance: m.h.start(t, ringbus.Options{})}
		i.cache = [2]*ringcache.Cache{i.instance.cache, i.instance.cache.Namespace("n")}
		i.bus = [2]*ringbus.Bus{i.instance.bus, i.instance.bus.Namespace("n")}
		m.instances = append(m.instances, i)
		for r := range uint64(3) {
			seen := new([2 * modelKeys]int64)
			start(10*n+r, &m.ended, func(rnd *rand.Rand) { i.read(rnd, seen) })
		}
		start(10*n+9, &m.quiet, i.write)
	}
	start(100, &m.quiet, m.trouble)
	time.Sleep(30 * time.Second)
	m.h.kill() // the last writes are while there is no subscription
	time.Sleep(1050 * time.Millisecond)
	m.quiet.Store(true)
	time.Sleep(10 * time.Second) // until trouble has mended everything, and Run has made it good
	m.h.set(func() { m.h.late = false; m.h.deliver() })
	time.Sleep(10 * time.Second)
	m.ended.Store(true)
	wg.Wait()
	for _, i := range m.instances {
		i.requireCurrent()
	}
	t.Logf("%d reads, %d loads, %d failed writes, messages %d", m.reads.Load(), m.loads.Load(),
		m.failed.Load(), len(m.h.sizes))
	require.Greater(t, m.reads.Load(), 2*m.loads.Load(), "there are hits")
	require.Positive(t, m.failed.Load())
}

// trouble delivers messages, and breaks something now and then.
func (m *model) trouble(rnd *rand.Rand) {
	pause(rnd, 20*time.Millisecond)
	m.h.shuffle(rnd)
	switch rnd.IntN(1000) {
	case 0, 1:
		m.h.kill()
	case 2:
		m.h.set(func() { m.h.down = true })
		m.h.kill()
		pause(rnd, 5*time.Second)
		m.h.set(func() { m.h.down = false })
	case 3:
		m.h.set(func() { m.h.mute = true })
		pause(rnd, 5*time.Second)
		m.h.set(func() { m.h.mute = false })
	}
}

func (i *modelInstance) read(rnd *rand.Rand, seen *[2 * modelKeys]int64) {
	m, k := i.model, rnd.IntN(2*modelKeys)
	deleted := i.deleted[k].Load()
	b, err := i.cache[k/modelKeys].GetOrLoad(ctx, nil, modelKey(k),
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			time.Sleep(time.Millisecond)
			v := m.db[k].Load()
			time.Sleep(time.Millisecond)
			m.loads.Add(1)
			return binary.BigEndian.AppendUint64(nil, uint64(v)), 0, nil
		})
	if err != nil {
		m.t.Error(err)
		return
	}
	m.reads.Add(1)
	v := int64(binary.BigEndian.Uint64(b))
	if v < deleted || v < seen[k] {
		m.t.Errorf("key %d: version %d after Del of %d and a read of %d", k, v, deleted, seen[k])
	}
	seen[k] = v
	pause(rnd, 3*time.Millisecond)
}

func (i *modelInstance) write(rnd *rand.Rand) {
	m, first, n := i.model, rnd.IntN(2*modelKeys), 1
	pause(rnd, 50*time.Millisecond)
	reset := rnd.IntN(20) == 0
	if reset {
		first, n = modelKeys, modelKeys
	}
	var versions [modelKeys]int64
	for d := range n {
		versions[d] = m.db[first+d].Add(1)
	}
	bus, err := i.bus[first/modelKeys], error(nil)
	if reset {
		err = bus.Reset(ctx)
	} else {
		err = bus.Del(ctx, modelKey(first))
	}
	if err != nil {
		m.failed.Add(1)
	}
	for d := range n {
		for old := i.deleted[first+d].Load(); old < versions[d]; old = i.deleted[first+d].Load() {
			i.deleted[first+d].CompareAndSwap(old, versions[d])
		}
	}
}

// requireCurrent requires that all keys are there and none is stale.
func (i *modelInstance) requireCurrent() {
	for k := range i.model.db {
		b, ok := i.cache[k/modelKeys].Peek(nil, modelKey(k))
		require.True(i.t, ok)
		require.EqualValues(i.t, i.model.db[k].Load(), binary.BigEndian.Uint64(b), "key %d", k)
	}
}
