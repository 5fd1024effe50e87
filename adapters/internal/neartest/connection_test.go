package neartest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConnections tests that nothing stale is read after a connection was lost.
func TestConnections(t *testing.T) {
	runEach(t, map[string]func(*testing.T, target){
		"DroppedByTheProxy": testDroppedByTheProxy,
		"DeadWithoutASign":  testDeadWithoutASign,
		"KilledByTheServer": testKilledByTheServer,
		"ServerRestarted":   testServerRestarted,
		"DroppedRepeatedly": testDroppedRepeatedly,
	})
}

// newProxyRig is newRig with a reader that connects through a proxy and soon detects dead
// connections.
func newProxyRig(t *testing.T, target target) (*rig, *proxy) {
	r := newRig(t, target)
	p := startProxy(t, r.server.addr())
	r.reader = connect(t, target, config{
		addrs:            []string{p.addr()},
		cache:            newCache(t),
		keepAlive:        100 * time.Millisecond,
		connWriteTimeout: 200 * time.Millisecond,
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
		require.True(r.t, r.get(k).hit, "it is cached again")
		r.write("SET", k, "newer")
		r.requireAfterRoundTrip(k, "newer")
	}
}

func testDroppedByTheProxy(t *testing.T, target target) {
	r, p := newProxyRig(t, target)
	r.requireNothingStale(p.drop)
	require.Positive(t, p.cut)
}

func testDeadWithoutASign(t *testing.T, target target) {
	r, p := newProxyRig(t, target)
	r.requireNothingStale(p.freeze)
	require.Positive(t, p.cut)
}

func testKilledByTheServer(t *testing.T, target target) {
	r := newRig(t, target)
	r.requireNothingStale(func() { require.Positive(t, r.killReaders()) })
}

// killReaders makes the server close all connections of clients named reader.
func (r *rig) killReaders() (killed int64) {
	r.t.Helper()
	for _, id := range readerIDs(r.text("CLIENT", "LIST")) {
		got := r.other.do(ctx, "CLIENT", "KILL", "ID", id)
		require.NoError(r.t, got.err)
		killed += got.value.(int64)
	}
	return killed
}

// The server is killed, and restarted on the same port without data.
func testServerRestarted(t *testing.T, target target) {
	r := newRig(t, target)
	restart := func() {
		r.server.kill()
		r.server.restart()
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
	require.Eventually(r.t, func() bool { return r.other.do(ctx, "PING").err == nil },
		2*patience, 10*time.Millisecond)
}

// The reader loses one connection after another while it reads.
func testDroppedRepeatedly(t *testing.T, target target) {
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
