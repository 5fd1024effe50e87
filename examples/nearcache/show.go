package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

var roles = []string{"writer", "reader"}

// side has the results of each process, without a near cache or with one.
type side []result

// show runs both sides and prints the table.
func show(cfg config, out io.Writer) error {
	if cfg.redis == "" {
		s, err := startServer()
		if err != nil {
			return fmt.Errorf("start a server: %w", err)
		}
		defer s.stop()
		cfg.redis = s.addr
	}
	client, err := connect(cfg.redis, nil)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", cfg.redis, err)
	}
	defer client.Close()
	defer removeKeys(client, cfg.keys)
	var sides [2]side
	for i, near := range []bool{false, true} {
		if err := writeKeys(client, cfg); err != nil {
			return fmt.Errorf("write the keys: %w", err)
		}
		if sides[i], err = runSide(cfg, near); err != nil {
			return err
		}
	}
	return report(out, cfg, sides)
}

// writeKeys gives every key its first version.
func writeKeys(client rueidis.Client, cfg config) error {
	v := value(0, cfg.valueSize)
	return eachKey(client, cfg.keys, func(key string) rueidis.Completed {
		return client.B().Set().Key(key).Value(v).Build()
	})
}

func removeKeys(client rueidis.Client, keys int) {
	_ = eachKey(client, keys, func(key string) rueidis.Completed {
		return client.B().Unlink().Key(key).Build()
	})
}

// eachKey runs a command for every key, many concurrently.
func eachKey(client rueidis.Client, keys int, build func(key string) rueidis.Completed) error {
	const batch = 1000
	for i := 0; i < keys; i += batch {
		var cmds rueidis.Commands
		for j := i; j < min(i+batch, keys); j++ {
			cmds = append(cmds, build(key(j)))
		}
		for _, res := range client.DoMulti(context.Background(), cmds...) {
			if err := res.Error(); err != nil {
				return err
			}
		}
	}
	return nil
}

// child is a running process.
type child struct {
	role string
	cmd  *exec.Cmd
	in   io.Closer
	out  *bufio.Reader
}

// runSide runs both processes at the same time.
func runSide(cfg config, near bool) (side, error) {
	var children []*child
	for _, role := range roles {
		c, err := startChild(cfg, role, near)
		if err != nil {
			return nil, fmt.Errorf("start the %s: %w", role, err)
		}
		defer c.stop()
		children = append(children, c)
	}
	for _, c := range children {
		if line, err := c.out.ReadString('\n'); strings.TrimSpace(line) != doneMark {
			return nil, fmt.Errorf("run the %s: it says %q, %v", c.role, line, err)
		}
	}
	// All writes are done.
	var s side
	for _, c := range children {
		c.in.Close()
		var r result
		if err := json.NewDecoder(c.out).Decode(&r); err != nil {
			return nil, fmt.Errorf("read what the %s did: %w", c.role, err)
		}
		s = append(s, r)
	}
	return s, nil
}

func startChild(cfg config, role string, near bool) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{role: role}
	c.cmd = exec.Command(self, "-role", role, fmt.Sprintf("-near=%t", near), "-redis", cfg.redis,
		"-keys", strconv.Itoa(cfg.keys), "-value", strconv.Itoa(cfg.valueSize),
		"-writes", strconv.Itoa(cfg.writes), "-for", cfg.span.String())
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// stop waits for the process, which ends soon after its input.
func (c *child) stop() {
	c.in.Close()
	_ = c.cmd.Wait()
}
