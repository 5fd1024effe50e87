package neartest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/internal/respserver"
)

// Cluster tests reads through a near cache of a cluster of three servers.
func Cluster(t *testing.T, target Target) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	cluster, err := respserver.StartCluster(dirs, target.Programs)
	requireStarted(t, err)
	t.Cleanup(cluster.Kill)
	for name, test := range map[string]func(*clusterRig){
		"ChangesAreSeen":     (*clusterRig).testChangesAreSeen,
		"NodeRestarted":      (*clusterRig).testNodeRestarted,
		"SlotMoved":          (*clusterRig).testSlotMoved,
		"EmptySlotMoved":     (*clusterRig).testEmptySlotMoved,
		"ManyKeysOfAllNodes": (*clusterRig).testManyKeys,
	} {
		t.Run(name, func(t *testing.T) { test(newClusterRig(t, target, cluster)) })
	}
}

// clusterRig is a rig whose server is a cluster of three.
type clusterRig struct {
	*rig
	cluster *respserver.Cluster
}

// clusterKeys are keys of many slots, and so of all nodes.
var clusterKeys = func() (keys []string) {
	for i := range 60 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	return keys
}()

func newClusterRig(t *testing.T, target Target, cluster *respserver.Cluster) *clusterRig {
	r := &clusterRig{&rig{t: t}, cluster}
	r.reader = connect(t, target, Config{
		Addrs:            cluster.Addrs(),
		Cache:            newCache(t),
		KeepAlive:        100 * time.Millisecond,
		ConnWriteTimeout: 500 * time.Millisecond,
	})
	r.other = connect(t, target, Config{Addrs: cluster.Addrs(), Multiplex: oneConnection})
	return r
}

// requireAllCached writes all keys and caches them.
func (r *clusterRig) requireAllCached(value string) {
	r.t.Helper()
	for _, k := range clusterKeys {
		r.write("SET", k, value+k)
		require.NoError(r.t, roundTrip(r.reader, k))
		r.requireCached(k, value+k)
	}
}

func (r *clusterRig) testChangesAreSeen() {
	for range 3 {
		r.requireAllCached("old")
		for i, k := range clusterKeys {
			want := ""
			if i%2 == 0 {
				want = "new" + k
				r.write("SET", k, want)
			} else {
				r.write("DEL", k)
			}
			r.requireAfterRoundTrip(k, want)
		}
	}
	for _, s := range r.cluster.Nodes {
		size, err := s.Do("DBSIZE")
		require.NoError(r.t, err)
		require.NotEqual(r.t, "0", size, "each node has some of the keys")
	}
}

// A node dies, and comes back with its slots and without data. What the others have is still
// found in the cache.
func (r *clusterRig) testNodeRestarted() {
	r.requireAllCached("old")
	r.cluster.Nodes[1].Kill()
	require.NoError(r.t, r.cluster.Nodes[1].Restart())
	require.NoError(r.t, r.cluster.Await())
	lost := 0
	for _, k := range clusterKeys {
		var got Reply
		require.Eventually(r.t, func() bool {
			got = r.other.Do(ctx, "GET", k)
			return got.Err == nil
		}, 2*patience, 10*time.Millisecond)
		want, _ := got.Value.(string)
		if got.Nil {
			lost++
		} else {
			require.True(r.t, r.get(k).Hit, "%s is on a node that did not restart", k)
		}
		r.requireAfterRoundTrip(k, want)
	}
	require.Positive(r.t, lost)
	require.Less(r.t, lost, len(clusterKeys))
	r.requireAllCached("new")
}

// A slot moves to another node, and its key is changed there.
func (r *clusterRig) testSlotMoved() {
	const key, slot = "foo", 12182 // of the third node
	r.write("SET", key, "old")
	require.NoError(r.t, roundTrip(r.reader, key))
	r.requireCached(key, "old")
	require.NoError(r.t, r.cluster.MoveSlot(slot, 2, 0, key))
	r.requireAfterRoundTrip(key, "old")
	r.write("SET", key, "new")
	r.requireAfterRoundTrip(key, "new")
	require.True(r.t, r.get(key).Hit)
	r.write("DEL", key)
	r.requireAfterRoundTrip(key, "")
}

// A slot moves without the key that is cached as missing, so the old node has nothing to
// report. The client reads from the new node once it has seen that the slot moved.
func (r *clusterRig) testEmptySlotMoved() {
	const key, slot = "hello", 866 // of the first node
	r.requireRead(key, "")
	require.True(r.t, r.get(key).Hit)
	require.NoError(r.t, r.cluster.MoveSlot(slot, 0, 2))
	r.write("SET", key, "new")
	require.Eventually(r.t, func() bool {
		return roundTrip(r.reader, key) == nil && r.get(key).Value == "new"
	}, 2*patience, 10*time.Millisecond)
}

func (r *clusterRig) testManyKeys() {
	want := map[string]string{}
	for _, k := range clusterKeys {
		r.write("SET", k, "old"+k)
		want[k] = "old" + k
	}
	read := func() {
		r.t.Helper()
		for range 2 {
			got, err := r.reader.MGet(ctx, hour, clusterKeys...)
			require.NoError(r.t, err)
			require.Equal(r.t, want, got)
		}
		for _, k := range clusterKeys {
			require.True(r.t, r.get(k).Hit, k)
		}
	}
	read()
	for i, k := range clusterKeys {
		if i%3 == 0 {
			r.write("SET", k, "new"+k)
			want[k] = "new" + k
			require.NoError(r.t, roundTrip(r.reader, k))
		}
	}
	read()
}
