package neartest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cluster is three servers, each with a part of the slots.
type cluster []*server

const slots = 16384

// startCluster starts a cluster, and waits until its servers know all slots.
func startCluster(t *testing.T, target target) (c cluster) {
	for i := range 3 {
		bus := freePort(t)
		s := startServer(t, target, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus))
		c = append(c, s)
		s.do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/3, (i+1)*slots/3-1))
		c[0].do(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", s.port, bus))
	}
	c.await()
	return c
}

func (c cluster) addrs() (addrs []string) {
	for _, s := range c {
		addrs = append(addrs, s.addr())
	}
	return addrs
}

// await waits until each server finds that all slots are served.
func (c cluster) await() {
	for _, s := range c {
		require.Eventually(s.t, func() bool {
			info, _ := s.do("CLUSTER INFO").(string)
			return strings.Contains(info, "cluster_state:ok\r") &&
				strings.Contains(info, "cluster_known_nodes:3\r")
		}, 2*patience, 10*time.Millisecond, "all slots are served")
	}
}

// moveSlot moves a slot, and those of its keys that are given, as redis-cli and valkey-cli do.
func (c cluster) moveSlot(slot, from, to int, keys ...string) {
	source, dest := c[from].do("CLUSTER MYID"), c[to].do("CLUSTER MYID")
	c[to].do(fmt.Sprintf("CLUSTER SETSLOT %d IMPORTING %s", slot, source))
	c[from].do(fmt.Sprintf("CLUSTER SETSLOT %d MIGRATING %s", slot, dest))
	for _, key := range keys {
		c[from].do(fmt.Sprintf("MIGRATE 127.0.0.1 %d %s 0 5000", c[to].port, key))
	}
	for _, node := range []int{to, from} {
		c[node].do(fmt.Sprintf("CLUSTER SETSLOT %d NODE %s", slot, dest))
	}
}

// TestCluster tests reads through a near cache of a cluster.
func TestCluster(t *testing.T) { eachTarget(t, testCluster) }

func testCluster(t *testing.T, target target) {
	cluster := startCluster(t, target)
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

// clusterRig is a rig whose server is a cluster.
type clusterRig struct {
	*rig
	cluster cluster
}

// clusterKeys are keys of many slots, and so of all nodes.
var clusterKeys = func() (keys []string) {
	for i := range 60 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	return keys
}()

func newClusterRig(t *testing.T, target target, cluster cluster) *clusterRig {
	r := &clusterRig{&rig{t: t}, cluster}
	r.reader = connect(t, target, config{
		addrs:            cluster.addrs(),
		cache:            newCache(t),
		keepAlive:        100 * time.Millisecond,
		connWriteTimeout: 500 * time.Millisecond,
	})
	r.other = connect(t, target, config{addrs: cluster.addrs(), multiplex: oneConnection})
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
	for _, s := range r.cluster {
		require.NotZero(r.t, s.do("DBSIZE"), "each node has some of the keys")
	}
}

// A node is killed, and restarted with its slots and without data. Values of the other nodes are
// still cached.
func (r *clusterRig) testNodeRestarted() {
	r.requireAllCached("old")
	r.cluster[1].kill()
	r.cluster[1].restart()
	r.cluster.await()
	lost := 0
	for _, k := range clusterKeys {
		var got reply
		require.Eventually(r.t, func() bool {
			got = r.other.do(ctx, "GET", k)
			return got.err == nil
		}, 2*patience, 10*time.Millisecond)
		want, _ := got.value.(string)
		if got.isNil {
			lost++
		} else {
			require.True(r.t, r.get(k).hit, "%s is on a node that did not restart", k)
		}
		r.requireAfterRoundTrip(k, want)
	}
	require.Positive(r.t, lost)
	require.Less(r.t, lost, len(clusterKeys))
	r.requireAllCached("new")
}

// A slot moves to another node, where its key is changed.
func (r *clusterRig) testSlotMoved() {
	const key, slot = "foo", 12182 // of the third node
	r.write("SET", key, "old")
	require.NoError(r.t, roundTrip(r.reader, key))
	r.requireCached(key, "old")
	r.cluster.moveSlot(slot, 2, 0, key)
	r.requireAfterRoundTrip(key, "old")
	r.write("SET", key, "new")
	r.requireAfterRoundTrip(key, "new")
	require.True(r.t, r.get(key).hit)
	r.write("DEL", key)
	r.requireAfterRoundTrip(key, "")
}

// A slot moves whose key is cached as missing, so the old node has nothing to report. The client
// reads from the new node once it has learned that the slot has moved.
func (r *clusterRig) testEmptySlotMoved() {
	const key, slot = "hello", 866 // of the first node
	r.requireRead(key, "")
	require.True(r.t, r.get(key).hit)
	r.cluster.moveSlot(slot, 0, 2)
	r.write("SET", key, "new")
	require.Eventually(r.t, func() bool {
		return roundTrip(r.reader, key) == nil && r.get(key).value == "new"
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
			got, err := r.reader.mget(ctx, hour, clusterKeys...)
			require.NoError(r.t, err)
			require.Equal(r.t, want, got)
		}
		for _, k := range clusterKeys {
			require.True(r.t, r.get(k).hit, k)
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
