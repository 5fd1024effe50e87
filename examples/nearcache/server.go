package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var errNoServer = errors.New("neither redis-server nor valkey-server is in the path: " +
	"install one (Debian: apt-get install redis-server), or name a running one by -redis host:port")

// server is a Redis that ends with this program.
type server struct {
	addr string
	dir  string
	cmd  *exec.Cmd
}

// startServer starts a Redis that keeps its data in memory, and waits until it answers.
func startServer() (*server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		return nil, errNoServer
	}
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	s := &server{addr: net.JoinHostPort("127.0.0.1", port)}
	if s.dir, err = os.MkdirTemp("", "nearcache"); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(program, "--bind", "127.0.0.1", "--port", port,
		"--dir", s.dir, "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		os.RemoveAll(s.dir)
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if err := s.await(); err != nil {
		s.stop()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return s, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// await waits for the first answer.
func (s *server) await() (err error) {
	for range 500 {
		var client rueidis.Client
		if client, err = connect(s.addr, nil); err == nil {
			err = client.Do(context.Background(), client.B().Ping().Build()).Error()
			client.Close()
			if err == nil {
				return nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	os.RemoveAll(s.dir)
}
