// Package bustest tests ringbus with NATS and Redis, and with processes that the tests start.
package bustest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringbus"
)

const patience = 20 * time.Second // what takes longer fails

var ctx = context.Background()

// system is a system that publishes messages.
type system struct {
	start func(t *testing.T, port int) (kill func())
	// connect returns a transport that uses the server at an address.
	connect func(addr string) (transport ringbus.Transport, closed func(), err error)
}

var systems = map[string]system{
	"NATS":  {startNATS, connectNATS},
	"Redis": {startRedis, connectRedis},
}

// eachSystem runs a test with each system.
func eachSystem(t *testing.T, test func(t *testing.T, name string, s *busServer)) {
	for name, system := range systems {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			port := l.Addr().(*net.TCPAddr).Port
			require.NoError(t, l.Close())
			s := &busServer{t: t, system: system, port: port}
			s.kill = system.start(t, port)
			t.Cleanup(func() { s.kill() })
			test(t, name, s)
		})
	}
}

// busServer is a server that can be killed, and restarted on the same port.
type busServer struct {
	t      *testing.T
	system system
	port   int
	kill   func()
}

func (s *busServer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *busServer) restart() { s.kill = s.system.start(s.t, s.port) }

func startNATS(t *testing.T, port int) (kill func()) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(patience))
	return func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

func connectNATS(addr string) (ringbus.Transport, func(), error) {
	conn, err := nats.Connect("nats://"+addr,
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, nil, err
	}
	return natsBus{conn, "cache"}, conn.Close, nil
}

// startRedis starts redis-server or valkey-server. The test is skipped if none is installed, except
// in CI.
func startRedis(t *testing.T, port int) (kill func()) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		path, err = exec.LookPath("valkey-server")
	}
	if err != nil && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip("neither redis-server nor valkey-server is installed")
	}
	require.NoError(t, err)
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "",
		"--appendonly", "no", "--client-output-buffer-limit", "pubsub 32mb 0 0", "--dir", t.TempDir())
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond, "the server starts")
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func connectRedis(addr string) (ringbus.Transport, func(), error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableRetry: true, DisableCache: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return redisBus{client, "cache"}, client.Close, nil
}
