package respserver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Slots is the number of parts that a cluster divides keys into.
const Slots = 16384

// Cluster is some servers, each with a part of the slots.
type Cluster struct {
	Nodes []*Server
	buses []int // the port by which each talks to the others
}

// StartCluster starts a cluster of the first program that is installed, with a server for
// each of dirs, and waits until all of them know all slots.
func StartCluster(dirs []string, programs []string) (*Cluster, error) {
	c := new(Cluster)
	err := c.start(dirs, programs)
	if err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(dirs, programs []string) error {
	for i, dir := range dirs {
		bus, err := freePort()
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		s, err := Start(dir, programs, "--cluster-enabled", "yes",
			"--cluster-port", strconv.Itoa(bus))
		if err != nil {
			return err
		}
		c.Nodes, c.buses = append(c.Nodes, s), append(c.buses, bus)
		first, end := c.slots(i, len(dirs))
		if _, err := s.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", first, end-1)); err != nil {
			return err
		}
	}
	for i, s := range c.Nodes {
		meet := fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", s.port, c.buses[i])
		if _, err := c.Nodes[0].Do(meet); err != nil {
			return err
		}
	}
	return c.Await()
}

// slots returns the slots of a node, end not included.
func (c *Cluster) slots(node, nodes int) (first, end int) {
	return node * Slots / nodes, (node + 1) * Slots / nodes
}

// Addrs returns where the servers listen.
func (c *Cluster) Addrs() (addrs []string) {
	for _, s := range c.Nodes {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Await waits until each server finds that all slots are served.
func (c *Cluster) Await() error {
	for range 2000 {
		if c.ready() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("await the cluster: not all slots are served after 20 s")
}

func (c *Cluster) ready() bool {
	for _, s := range c.Nodes {
		info, err := s.Do("CLUSTER INFO")
		nodes := fmt.Sprintf("cluster_known_nodes:%d\r", len(c.Nodes))
		if err != nil || !strings.Contains(info, "cluster_state:ok\r") ||
			!strings.Contains(info, nodes) {
			return false
		}
	}
	return true
}

// MoveSlot has node to serve a slot from now on, with the keys that it has. Its keys are
// moved by MIGRATE, as redis-cli and valkey-cli move them.
func (c *Cluster) MoveSlot(slot, from, to int, keys ...string) error {
	var ids [2]string
	for i, node := range []int{from, to} {
		id, err := c.Nodes[node].Do("CLUSTER MYID")
		if err != nil {
			return err
		}
		ids[i] = id
	}
	type step struct {
		node    int
		command string
	}
	steps := []step{
		{to, fmt.Sprintf("CLUSTER SETSLOT %d IMPORTING %s", slot, ids[0])},
		{from, fmt.Sprintf("CLUSTER SETSLOT %d MIGRATING %s", slot, ids[1])},
	}
	for _, key := range keys {
		migrate := fmt.Sprintf("MIGRATE 127.0.0.1 %d %s 0 5000", c.Nodes[to].port, key)
		steps = append(steps, step{from, migrate})
	}
	for _, node := range []int{to, from} {
		steps = append(steps, step{node, fmt.Sprintf("CLUSTER SETSLOT %d NODE %s", slot, ids[1])})
	}
	for _, s := range steps {
		if _, err := c.Nodes[s.node].Do(s.command); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all servers.
func (c *Cluster) Kill() {
	for _, s := range c.Nodes {
		s.Kill()
	}
}
