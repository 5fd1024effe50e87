package ringgroupcache_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/groupcache/groupcache-go/v3"
	"github.com/groupcache/groupcache-go/v3/transport"
	"github.com/groupcache/groupcache-go/v3/transport/peer"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgroupcache"
)

// node is a member of a cluster, with its own server on 127.0.0.1.
type node struct {
	daemon    *groupcache.Daemon
	products  transport.Group
	loads     atomic.Int64
	fromPeers atomic.Int64 // values that other members sent
}

const clusterKeys = 3000

func startNode(t *testing.T) *node {
	n, quiet := &node{}, slog.New(slog.DiscardHandler)
	var err error
	n.daemon, err = groupcache.ListenAndServe(t.Context(), "127.0.0.1:0", groupcache.Options{
		CacheFactory: ringgroupcache.Factory(ringcache.Options{}),
		HashFn:       xxhash.Sum64,
		Logger:       quiet, // peers that do not answer are logged
		Transport: transport.NewHttpTransport(transport.HttpTransportOptions{
			Logger: quiet,
			Client: &http.Client{Transport: n, Timeout: 10 * time.Second},
		}),
	})
	require.NoError(t, err)
	t.Cleanup(n.stop)
	load := func(_ context.Context, key string, to transport.Sink) error {
		n.loads.Add(1)
		return to.SetString("value of "+key, time.Now().Add(time.Hour))
	}
	n.products, err = n.daemon.NewGroup("products", 256<<20, groupcache.GetterFunc(load))
	require.NoError(t, err)
	return n
}

// RoundTrip counts the responses of other members.
func (n *node) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK {
		n.fromPeers.Add(1)
	}
	return response, err
}

func (n *node) stop() { _ = n.daemon.Shutdown(context.Background()) }

// introduce gives each node the list of all.
func introduce(t *testing.T, nodes []*node) {
	t.Helper()
	var peers []peer.Info
	for _, n := range nodes {
		peers = append(peers, peer.Info{Address: n.daemon.ListenAddress()})
	}
	for _, n := range nodes {
		require.NoError(t, n.daemon.SetPeers(t.Context(), peers))
	}
}

// ask asks the nodes for all keys of a kind, at the same time, and calls halfway once. It returns
// the number of loads of each node, and that of the values that nodes got from others.
func ask(t *testing.T, nodes []*node, kind string, halfway func()) (loads []int, fromPeers int) {
	t.Helper()
	for _, n := range nodes {
		n.loads.Store(0)
		n.fromPeers.Store(0)
	}
	var answers atomic.Int64
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range clusterKeys {
				key, value := fmt.Sprint(kind, ":", i), ""
				err := n.products.Get(t.Context(), key, transport.StringSink(&value))
				if err != nil || value != "value of "+key {
					t.Errorf("get %s: %q, %v", key, value, err)
				}
				if answers.Add(1) == int64(len(nodes)*clusterKeys/2) {
					halfway()
				}
			}
		}()
	}
	wg.Wait()
	for _, n := range nodes {
		loads = append(loads, int(n.loads.Load()))
		fromPeers += int(n.fromPeers.Load())
	}
	t.Logf("%s: %d requests, loads of each process %d, values from peers %d",
		kind, answers.Load(), loads, fromPeers)
	return loads, fromPeers
}

func TestCluster_OneNodeStops(t *testing.T) {
	nodes := []*node{startNode(t), startNode(t), startNode(t)}
	introduce(t, nodes)
	nothing := func() {}

	loads, fromPeers := ask(t, nodes, "a", nothing)
	require.Equal(t, clusterKeys, loads[0]+loads[1]+loads[2], "one load of each key")
	require.Positive(t, min(loads[0], loads[1], loads[2]), "each node owns some keys")
	require.Equal(t, 2*clusterKeys, fromPeers)

	loads, fromPeers = ask(t, nodes, "a", nothing)
	require.Equal(t, []int{0, 0, 0}, loads, "each node has all values")
	require.Zero(t, fromPeers)

	left := nodes[:2]
	loads, fromPeers = ask(t, left, "b", nodes[2].stop)
	require.Greater(t, loads[0]+loads[1]+fromPeers, clusterKeys,
		"both load the keys of the one that stopped")

	introduce(t, left)
	loads, fromPeers = ask(t, left, "c", nothing)
	require.Equal(t, clusterKeys, loads[0]+loads[1], "one load of each key")
	require.Equal(t, clusterKeys, fromPeers)
}
