// Package neartest tests the near caches ringrueidis and ringvalkey with their clients, and with
// servers that the tests start.
package neartest

import (
	"context"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
)

// target is a near cache with its client.
type target struct {
	name     string
	programs []string // servers that it is for; the first one installed is started
	connect  func(config) (client, error)
}

var targets = []target{
	{"rueidis", []string{"redis-server", "valkey-server"}, connectRueidis},
	{"valkey-go", []string{"valkey-server"}, connectValkey},
}

// eachTarget runs a test with each near cache.
func eachTarget(t *testing.T, test func(t *testing.T, target target)) {
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) { test(t, target) })
	}
}

// runEach runs some tests with each near cache.
func runEach(t *testing.T, tests map[string]func(*testing.T, target)) {
	eachTarget(t, func(t *testing.T, target target) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) { test(t, target) })
		}
	})
}

// config describes a client.
type config struct {
	addrs            []string         // several: those of a cluster
	name             string           // of its connections
	cache            *ringcache.Cache // nil: no near cache
	lruSize          int              // of the client's own cache; 0: none
	db               int
	multiplex        int           // PipelineMultiplex of the client
	keepAlive        time.Duration // 0: the client's default
	connWriteTimeout time.Duration // 0: the client's default
}

// client is a client of Redis or Valkey. The first word of a command is its name, the second is its
// key. A reply without a value is no error.
type client interface {
	// do sends a command past the near cache.
	do(ctx context.Context, words ...string) reply
	// pipeline sends commands in one batch past the near cache.
	pipeline(ctx context.Context, commands ...[]string) []reply
	// doCache reads through the near cache.
	doCache(ctx context.Context, ttl time.Duration, words ...string) reply
	// get is doCache of a GET with no overhead of the tests. The value is empty if there is none.
	get(key string) (value string, hit bool)
	// doStatic is doCache without a request for the time to live of the server's key.
	doStatic(ctx context.Context, ttl time.Duration, words ...string) reply
	// doMulti is doCache with several commands.
	doMulti(ctx context.Context, ttl time.Duration, commands ...[]string) []reply
	// mget reads several keys, and returns those that have a value.
	mget(ctx context.Context, ttl time.Duration, keys ...string) (map[string]string, error)
	close()
}

// reply is a reply to a command.
type reply struct {
	value any  // a string, an int64, a slice, a map
	isNil bool // there is no value
	err   error
	hit   bool  // from the near cache
	ttl   int64 // the remaining time there, in s
	pxat  int64 // when it expires there, in ms of Unix time
}
