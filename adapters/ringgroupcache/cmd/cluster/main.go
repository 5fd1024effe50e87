// Command cluster runs three processes on this machine that share a cache through groupcache-go,
// each with a ringcache for its part, and kills one of them while the others serve requests.
//
//	go run ./cmd/cluster
//
// A value is loaded from the "database" once for all processes, by the process that owns its key.
// When the owner is killed, each of the others loads such values itself until it gets the list of
// remaining processes. No request fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"text/tabwriter"
)

const (
	nodes = 3
	keys  = 3000
)

func main() {
	if os.Getenv(nodeVariable) != "" {
		exit(serve(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run shows the cluster at work.
func run(ctx context.Context, out io.Writer) error {
	c := &cluster{}
	defer c.stop()
	for range nodes {
		n, err := start(ctx)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	if err := c.introduce(); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\trequests\tloads of each process\tvalues from peers")
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"each process is asked for all keys", func(ctx context.Context) error {
			return c.ask(ctx, "a", c.alive(), nil)
		}},
		{"again", func(ctx context.Context) error { return c.ask(ctx, "a", c.alive(), nil) }},
		{"other keys, one process is killed meanwhile", c.askWhileOneIsKilled},
		{"other keys, after the list is updated", func(ctx context.Context) error {
			if err := c.introduce(); err != nil {
				return err
			}
			return c.ask(ctx, "c", c.alive(), nil)
		}},
	}
	for _, step := range steps {
		before := c.totals()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		for _, n := range c.alive() {
			if err := n.count(ctx); err != nil {
				return err
			}
		}
		after := c.totals()
		fmt.Fprintf(table, "%s\t%d\t%v\t%d\n", step.name, after.requests-before.requests,
			minus(after.loads, before.loads), after.fromPeers-before.fromPeers)
	}
	return table.Flush()
}

// cluster are the processes. The last one is killed after a while.
type cluster struct {
	nodes    []*process
	killed   bool
	mu       sync.Mutex
	requests int // guarded by mu
}

// totals are sums since the start. Those of a killed process are of the time before the step in
// which it was killed.
type totals struct {
	requests, fromPeers int
	loads               []int // of each process
}

func (c *cluster) totals() (t totals) {
	t.requests = c.requests
	for _, n := range c.nodes {
		t.loads = append(t.loads, n.counts.Loads)
		t.fromPeers += n.counts.FromPeers
	}
	return t
}

func minus(a, b []int) (d []int) {
	for i := range a {
		d = append(d, a[i]-b[i])
	}
	return d
}

func (c *cluster) alive() []*process {
	if c.killed {
		return c.nodes[:nodes-1]
	}
	return c.nodes
}

// introduce tells each process who is there.
func (c *cluster) introduce() error {
	var peers []string
	for _, n := range c.alive() {
		peers = append(peers, n.Peer)
	}
	for _, n := range c.alive() {
		if err := n.meet(peers); err != nil {
			return err
		}
	}
	return nil
}

// askWhileOneIsKilled asks the others, and kills one when they have given half of their answers.
func (c *cluster) askWhileOneIsKilled(ctx context.Context) error {
	others, victim := c.nodes[:nodes-1], c.nodes[nodes-1]
	return c.ask(ctx, "b", others, func(answers int) {
		if answers == len(others)*keys/2 {
			victim.kill()
			c.killed = true
		}
	})
}

// ask asks some processes for all keys of a kind, side by side. After each answer it calls
// answered, if it is not nil, with the number of answers so far.
func (c *cluster) ask(
	ctx context.Context, kind string, of []*process, answered func(answers int),
) error {
	errs, answers := make(chan error), 0
	count := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests++
		if answers++; answered != nil {
			answered(answers)
		}
	}
	for _, n := range of {
		go func() {
			for i := range keys {
				if err := n.ask(ctx, fmt.Sprintf("%s:%d", kind, i)); err != nil {
					errs <- err
					return
				}
				count()
			}
			errs <- nil
		}()
	}
	var failed []error
	for range of {
		failed = append(failed, <-errs)
	}
	return errors.Join(failed...)
}

func (c *cluster) stop() {
	for _, n := range c.nodes {
		n.kill()
	}
}
