// Package redisserver runs a server of Redis, or of Valkey, for tests and measurements.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// ErrNotInstalled is returned by Start where neither program is in the path.
var ErrNotInstalled = errors.New("neither redis-server nor valkey-server is installed")

// Server is a process that listens on a port of 127.0.0.1 and keeps its data in memory
// only. Its methods must not be called at the same time.
type Server struct {
	program string
	port    int
	dir     string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process is gone
}

// Start starts a server whose files are in dir, and waits until it answers.
func Start(dir string) (*Server, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, dir: dir}
	for range 5 { // another process may take the port first
		if s.port, err = freePort(); err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		if err = s.Restart(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func find() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Addr returns where the server listens.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Restart starts the server again after Kill, on the same port and with no data.
func (s *Server) Restart() error {
	s.cmd = exec.Command(s.program, "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port),
		"--dir", s.dir, "--save", "", "--appendonly", "no")
	s.ended = make(chan struct{})
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.program, err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	for range 1000 {
		if s.answers() {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("start %s on port %d: it ended", s.program, s.port)
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.Kill()
	return fmt.Errorf("start %s on port %d: no answer", s.program, s.port)
}

// answers tells whether this server, and not that of somebody else, has the port.
func (s *Server) answers() bool {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{s.Addr()},
		DisableCache:      true,
		ForceSingleClient: true,
	})
	if err != nil {
		return false
	}
	defer client.Close()
	info := client.B().Info().Section("server").Build()
	text, err := client.Do(context.Background(), info).ToString()
	return err == nil && strings.Contains(text, fmt.Sprintf("process_id:%d\r", s.cmd.Process.Pid))
}

// Kill ends the server without a chance to say goodbye, and waits until it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}
