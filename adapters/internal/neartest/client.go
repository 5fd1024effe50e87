// Package neartest tests a near cache from a user's point of view: with the client that it is
// for, and with servers that the tests start.
package neartest

import (
	"context"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
)

// Target is a near cache with its client.
type Target struct {
	Programs []string // servers that it is for; the first one installed is started
	Connect  func(Config) (Client, error)
}

// Config says how a Client is to be made.
type Config struct {
	Addrs            []string         // more than one: of a cluster
	Name             string           // of its connections
	Cache            *ringcache.Cache // nil: no near cache
	DB               int
	Multiplex        int           // as PipelineMultiplex of the client
	KeepAlive        time.Duration // 0: the client's default
	ConnWriteTimeout time.Duration // 0: the client's default
}

// Client is a client of Redis or Valkey. The first word of a command is its name, the
// second is its key. A reply without a value is no error.
type Client interface {
	// Do sends a command past the near cache.
	Do(ctx context.Context, words ...string) Reply
	// DoCache reads by way of the near cache.
	DoCache(ctx context.Context, ttl time.Duration, words ...string) Reply
	// DoStatic is DoCache that does not ask for the time to live of the server's key.
	DoStatic(ctx context.Context, ttl time.Duration, words ...string) Reply
	// DoMulti is DoCache with several commands.
	DoMulti(ctx context.Context, ttl time.Duration, commands ...[]string) []Reply
	// MGet reads several keys, and returns those that have a value.
	MGet(ctx context.Context, ttl time.Duration, keys ...string) (map[string]string, error)
	Close()
}

// Reply is a reply to a command.
type Reply struct {
	Value any  // a string, an int64, a slice, a map
	Nil   bool // there is no value
	Err   error
	Hit   bool  // it is from the near cache
	TTL   int64 // what is left of its time there, in s
	PXAT  int64 // when its time there is over, in ms of Unix time
}

// Replies tests reads through a near cache of one server.
func Replies(t *testing.T, target Target) { run(t, target, replyTests) }

// Connections tests that nothing stale is read after a connection was lost.
func Connections(t *testing.T, target Target) { run(t, target, connectionTests) }

func run(t *testing.T, target Target, tests map[string]func(*testing.T, Target)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, target) })
	}
}
