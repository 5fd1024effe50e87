package neartest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var connectionTests = map[string]func(*testing.T, Target){
	"DroppedByTheProxy": testDroppedByTheProxy,
	"DeadWithoutASign":  testDeadWithoutASign,
	"KilledByTheServer": testKilledByTheServer,
	"ServerRestarted":   testServerRestarted,
	"DroppedRepeatedly": testDroppedRepeatedly,
}

// newProxyRig is newRig with a reader that goes through a proxy, and soon sees that a
// connection is dead.
func newProxyRig(t *testing.T, target Target) (*rig, *proxy) {
	r := newRig(t, target)
	p := startProxy(t, r.server.Addr())
	r.reader = connect(t, target, Config{
		Addrs:            []string{p.addr()},
		Cache:            newCache(t),
		KeepAlive:        100 * time.Millisecond,
		ConnWriteTimeout: 200 * time.Millisecond,
	})
	return r, p
}

// requireNothingStale changes keys after the connection was interrupted.
func (r *rig) requireNothingStale(interrupt func()) {
	r.t.Helper()
	for _, k := range []string{"a", "b", "c", "d"} { // in several slots
		r.write("SET", k, "old")
		r.write("SET", "deleted"+k, "old")
		require.NoError(r.t, roundTrip(r.reader, k))
		r.requireCached(k, "old")
		r.requireCached("deleted"+k, "old")
	}
	interrupt()
	for _, k := range []string{"a", "b", "c", "d"} {
		r.write("SET", k, "new")
		r.write("DEL", "deleted"+k)
	}
	for _, k := range []string{"a", "b", "c", "d"} {
		r.requireAfterRoundTrip(k, "new")
		r.requireAfterRoundTrip("deleted"+k, "")
		require.True(r.t, r.get(k).Hit, "it is cached again")
		r.write("SET", k, "newer")
		r.requireAfterRoundTrip(k, "newer")
	}
}

func testDroppedByTheProxy(t *testing.T, target Target) {
	r, p := newProxyRig(t, target)
	r.requireNothingStale(p.drop)
	require.Positive(t, p.cut)
}

func testDeadWithoutASign(t *testing.T, target Target) {
	r, p := newProxyRig(t, target)
	r.requireNothingStale(p.freeze)
	require.Positive(t, p.cut)
}

func testKilledByTheServer(t *testing.T, target Target) {
	r := newRig(t, target)
	r.requireNothingStale(func() { require.Positive(t, r.killReaders()) })
}

// killReaders has the server close all connections of clients named reader.
func (r *rig) killReaders() (killed int64) {
	r.t.Helper()
	for _, id := range readerIDs(r.text("CLIENT", "LIST")) {
		got := r.other.Do(ctx, "CLIENT", "KILL", "ID", id)
		require.NoError(r.t, got.Err)
		killed += got.Value.(int64)
	}
	return killed
}

// The server dies with all data, and comes back on the same port without any.
func testServerRestarted(t *testing.T, target Target) {
	r := newRig(t, target)
	restart := func() {
		r.server.Kill()
		require.NoError(t, r.server.Restart())
		r.awaitServer()
	}
	r.requireNothingStale(restart)

	r.write("SET", "k", "old")
	require.NoError(t, roundTrip(r.reader, "k"))
	r.requireCached("k", "old")
	restart()
	r.requireAfterRoundTrip("k", "")
}

// awaitServer waits until the other client has a connection again.
func (r *rig) awaitServer() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.other.Do(ctx, "PING").Err == nil },
		2*patience, 10*time.Millisecond)
}

// The reader loses one connection after another while it reads.
func testDroppedRepeatedly(t *testing.T, target Target) {
	r, p := newProxyRig(t, target)
	for range 20 {
		r.write("SET", "k", "old")
		r.requireAfterRoundTrip("k", "old")
		p.drop()
		r.write("SET", "k", "new")
		r.requireAfterRoundTrip("k", "new")
	}
	require.GreaterOrEqual(t, p.cut, 20)
}
