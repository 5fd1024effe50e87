// Package respserver runs servers of Redis or Valkey for tests and measurements.
package respserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrNotInstalled is returned by Start where none of the programs is in the path.
var ErrNotInstalled = errors.New("the server is not installed")

// Server is a process that listens on a port of 127.0.0.1 and keeps its data in memory
// only. Its methods must not be called at the same time.
type Server struct {
	program string
	port    int
	args    []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process is gone
}

// Start starts the first of the programs that is installed, and waits until it answers.
// Its files are in dir. Each of args is passed on, such as "--maxmemory".
func Start(dir string, programs []string, args ...string) (*Server, error) {
	program, err := find(programs)
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, args: append([]string{"--dir", dir}, args...)}
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

func find(programs []string) (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", strings.Join(programs, " or "), ErrNotInstalled)
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

// Program returns the name of the program that runs.
func (s *Server) Program() string { return filepath.Base(s.program) }

// Restart starts the server again after Kill, on the same port and with no data.
func (s *Server) Restart() error {
	s.cmd = exec.Command(s.program, append([]string{"--bind", "127.0.0.1",
		"--port", strconv.Itoa(s.port), "--save", "", "--appendonly", "no"}, s.args...)...)
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
	text, err := s.Do("INFO server")
	return err == nil && strings.Contains(text, fmt.Sprintf("process_id:%d\r", s.cmd.Process.Pid))
}

// Kill ends the server without a chance to say goodbye, and waits until it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Do opens a connection, sends a command whose words are separated by spaces, and returns the
// reply, which must be a line or a string.
func (s *Server) Do(command string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+', ':':
		return rest, nil
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", fmt.Errorf("send %q: the length of the reply is %q", command, rest)
		}
		text := make([]byte, n)
		_, err = io.ReadFull(in, text)
		return string(text), err
	}
	return "", fmt.Errorf("send %q: the reply is %q", command, line)
}
