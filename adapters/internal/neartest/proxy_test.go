package neartest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy forwards connections to a server, and can break them.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	pairs map[*pair]bool
	cut   int // connections that were broken
}

// pair is a connection of a client and the one to the server.
type pair struct {
	client, server net.Conn
	dead           atomic.Bool // bytes are discarded, in both directions
}

func startProxy(t *testing.T, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, server: server, pairs: map[*pair]bool{}}
	t.Cleanup(func() {
		l.Close()
		p.drop()
	})
	go p.accept()
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		c := &pair{client: client, server: server}
		p.mu.Lock()
		p.pairs[c] = true
		p.mu.Unlock()
		go p.copy(c, client, server)
		go p.copy(c, server, client)
	}
}

func (p *proxy) copy(c *pair, dst, src net.Conn) {
	defer p.close(c)
	b := make([]byte, 64<<10)
	for {
		n, err := src.Read(b)
		if n > 0 && !c.dead.Load() {
			if _, err := dst.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) close(c *pair) {
	p.mu.Lock()
	delete(p.pairs, c)
	p.mu.Unlock()
	c.client.Close()
	c.server.Close()
}

// drop closes all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.client.Close()
		c.server.Close()
		p.cut++
	}
}

// freeze stops forwarding on all connections without closing them. New connections work.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.dead.Store(true)
		p.cut++
	}
}
