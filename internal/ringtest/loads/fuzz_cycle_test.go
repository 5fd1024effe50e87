package loads

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// loadGraph says what the load of each key does: it asks for other keys, one after the other or
// together, and then returns its own key, or an error.
type loadGraph struct {
	c     *ringcache.Cache
	nodes [loadNodes]loadNode
}

const loadNodes = 6

type loadNode struct {
	asks  []int
	batch bool // it asks for all of them in one call
	fails bool
}

var errNode = errors.New("a load of the graph that fails")

func nodeKey(i int) []byte { return fmt.Appendf(nil, "node %d", i) }

// load is the load of all keys of the graph.
func (g *loadGraph) load(ctx context.Context, key []byte) ([]byte, time.Duration, error) {
	var n loadNode
	for i := range g.nodes {
		if string(nodeKey(i)) == string(key) {
			n = g.nodes[i]
		}
	}
	if err := g.ask(ctx, n.asks, n.batch); err != nil {
		return nil, 0, err
	}
	if n.fails {
		return nil, 0, errNode
	}
	return key, 0, nil
}

// ask asks for keys, and returns the first error.
func (g *loadGraph) ask(ctx context.Context, nodes []int, batch bool) error {
	if !batch {
		for _, i := range nodes {
			v, err := g.c.GetOrLoad(ctx, nil, nodeKey(i), g.load)
			if err == nil && string(v) != string(nodeKey(i)) {
				err = fmt.Errorf("key %s has %q", nodeKey(i), v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	keys := make([][]byte, len(nodes))
	for j, i := range nodes {
		keys[j] = nodeKey(i)
	}
	_, _, err := g.c.GetOrLoadBatch(ctx, nil, keys, make([][]byte, len(keys)),
		func(ctx context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
			all := make([]ringtest.Loaded, len(keys))
			for j, k := range keys {
				v, _, err := g.load(ctx, k)
				if err != nil {
					return nil, err
				}
				all[j].Value = v
			}
			return all, nil
		})
	return err
}

// mayClose reports whether loads may come to wait for each other in a circle. The keys of a batch
// are loaded by one function, so who waits for one of them waits for all.
func (g *loadGraph) mayClose() bool {
	var group [loadNodes]int // of keys that a batch may load together
	for i := range group {
		group[i] = i
	}
	for _, n := range g.nodes {
		for _, j := range n.asks {
			if old, first := group[j], group[n.asks[0]]; n.batch {
				for k := range group {
					if group[k] == old {
						group[k] = first
					}
				}
			}
		}
	}
	var waits [loadNodes][loadNodes]bool // of groups for groups
	for i, n := range g.nodes {
		for _, j := range n.asks {
			waits[group[i]][group[j]] = true
		}
	}
	for range waits {
		for i := range waits {
			for j := range waits {
				for k := range waits {
					waits[i][k] = waits[i][k] || waits[i][j] && waits[j][k]
				}
			}
		}
	}
	for i := range waits {
		if waits[i][i] {
			return true
		}
	}
	return false
}

// FuzzLoadsThatCallLoads has several callers load the nodes of any graph at once. All of them
// return: with the value, with the error of a load that fails, or, where the graph has a circle,
// with ErrLoadCycle.
func FuzzLoadsThatCallLoads(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{1, 1, 2, 2, 4, 0, 0, 1, 2, 3, 4, 5})   // a circle of two
	f.Add([]byte{0, 2, 0, 4, 0, 8, 0, 16, 0, 32, 0, 0}) // a chain
	f.Add([]byte{3, 62, 3, 61, 3, 59, 3, 55, 3, 47, 3, 31, 0, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := ringtest.Input(data)
		c := ringtest.MustCache(t, ringtest.Tiny(4, 1024, 64))
		g := &loadGraph{c: c}
		fails := false
		for i := range g.nodes {
			n := &g.nodes[i]
			op, asks := in.Byte(), in.Byte()
			n.batch, n.fails = op&1 != 0, op&0xf0 == 0xf0
			fails = fails || n.fails
			for j := range loadNodes {
				if asks>>j&1 != 0 {
					n.asks = append(n.asks, j)
				}
			}
		}
		circle := g.mayClose()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		errs := make([]error, 1+len(in)%8)
		for i := range errs {
			nodes := []int{int(in.Byte()) % loadNodes}
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[i] = g.ask(ctx, nodes, i%2 != 0)
			}()
		}
		wg.Wait()
		require.NoError(t, ctx.Err(), "loads wait for each other")
		for _, err := range errs {
			switch {
			case err == nil, circle && errors.Is(err, ringcache.ErrLoadCycle),
				fails && errors.Is(err, errNode):
			default:
				require.NoError(t, err, "circle: %t, fails: %t", circle, fails)
			}
		}
	})
}
