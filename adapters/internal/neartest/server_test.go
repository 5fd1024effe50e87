package neartest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// server is a process that listens on a port of 127.0.0.1 and keeps its data in memory only.
type server struct {
	t       testing.TB
	target  target
	program string
	port    int
	args    []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process is gone
	admin   client        // of this server alone, even if it is part of a cluster
}

// startServer starts the first program of the target that is installed, and ends it after the
// test. The test is skipped if none is installed, except in CI.
func startServer(t testing.TB, target target, args ...string) *server {
	t.Helper()
	s := &server{t: t, target: target, args: append(args, "--dir", t.TempDir())}
	for _, name := range target.programs {
		if path, err := exec.LookPath(name); err == nil {
			s.program = path
			break
		}
	}
	if s.program == "" {
		missing := strings.Join(target.programs, " or ") + " is not installed"
		if os.Getenv("RINGCACHE_CI") == "" {
			t.Skip(missing)
		}
		require.Fail(t, missing)
	}
	t.Cleanup(s.kill)
	for range 5 { // another process may take the port first
		s.port = freePort(t)
		if s.start() {
			return s
		}
	}
	require.Fail(t, "the server does not start")
	return nil
}

func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// start starts the process, and reports whether it answers.
func (s *server) start() bool {
	cmd := exec.Command(s.program, append([]string{"--bind", "127.0.0.1",
		"--port", strconv.Itoa(s.port), "--save", "", "--appendonly", "no"}, s.args...)...)
	require.NoError(s.t, cmd.Start())
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for range 1000 {
		if s.answers() {
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.kill()
	return false
}

// answers reports whether this process answers on the port, and not another one.
func (s *server) answers() bool {
	admin, err := s.target.connect(config{addrs: []string{s.addr()}, multiplex: oneConnection})
	if err != nil {
		return false
	}
	info, _ := admin.do(ctx, "INFO", "server").value.(string)
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r", s.cmd.Process.Pid)) {
		admin.close()
		return false
	}
	s.admin = admin
	return true
}

// restart starts the server again after kill, on the same port and without data. A connection of
// somebody else may have the port for a moment.
func (s *server) restart() {
	s.t.Helper()
	for range 50 {
		if s.start() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Fail(s.t, "the server does not start again")
}

// kill kills the process and waits for its end.
func (s *server) kill() {
	if s.admin != nil {
		s.admin.close()
		s.admin = nil
	}
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// do sends a command, whose words are separated by spaces, to this server alone.
func (s *server) do(command string) any {
	s.t.Helper()
	got := s.admin.do(ctx, strings.Fields(command)...)
	require.NoError(s.t, got.err, command)
	return got.value
}
