package ringrueidis_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// newProxyRig is newRig with a reader that goes through a proxy, and soon sees that a
// connection is dead.
func newProxyRig(t *testing.T) (*rig, *proxy) {
	r := newRig(t)
	p := startProxy(t, r.server.Addr())
	o := rueidis.ClientOption{ConnWriteTimeout: 200 * time.Millisecond}
	o.Dialer.KeepAlive = 100 * time.Millisecond
	r.reader = connect(t, p.addr(), o)
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
		require.True(r.t, r.get(k).IsCacheHit(), "it is cached again")
		r.write("SET", k, "newer")
		r.requireAfterRoundTrip(k, "newer")
	}
}

func TestConnection_DroppedByTheProxy(t *testing.T) {
	r, p := newProxyRig(t)
	r.requireNothingStale(p.drop)
	require.Positive(t, p.cut)
}

func TestConnection_DeadWithoutASign(t *testing.T) {
	r, p := newProxyRig(t)
	r.requireNothingStale(p.freeze)
	require.Positive(t, p.cut)
}

func TestConnection_KilledByTheServer(t *testing.T) {
	r := newRig(t)
	r.requireNothingStale(func() { require.Positive(t, r.killReaders()) })
}

// killReaders has the server close all connections of clients named reader.
func (r *rig) killReaders() (killed int) {
	r.t.Helper()
	list := r.other.B().Arbitrary("CLIENT", "LIST").Build()
	text, err := r.other.Do(ctx, list).ToString()
	require.NoError(r.t, err)
	for _, id := range readerIDs(text) {
		kill := r.other.B().Arbitrary("CLIENT", "KILL", "ID", id).Build()
		n, err := r.other.Do(ctx, kill).AsInt64()
		require.NoError(r.t, err)
		killed += int(n)
	}
	return killed
}

// The server dies with all data, and comes back on the same port without any.
func TestConnection_ServerKilledAndRestarted(t *testing.T) {
	r := newRig(t)
	restart := func() { require.NoError(t, r.server.Restart()) }
	r.requireNothingStale(func() {
		r.server.Kill()
		restart()
		r.awaitServer()
	})

	r.write("SET", "k", "old")
	require.NoError(t, roundTrip(r.reader, "k"))
	r.requireCached("k", "old")
	r.server.Kill()
	restart()
	r.awaitServer()
	r.requireAfterRoundTrip("k", "")
}

// awaitServer waits until the other client has a connection again.
func (r *rig) awaitServer() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		return r.other.Do(ctx, r.other.B().Ping().Build()).Error() == nil
	}, 2*patience, 10*time.Millisecond)
}

// The reader loses one connection after another while it reads.
func TestConnection_Repeatedly(t *testing.T) {
	r, p := newProxyRig(t)
	for range 20 {
		r.write("SET", "k", "old")
		r.requireAfterRoundTrip("k", "old")
		p.drop()
		r.write("SET", "k", "new")
		r.requireAfterRoundTrip("k", "new")
	}
	require.GreaterOrEqual(t, p.cut, 20)
}
