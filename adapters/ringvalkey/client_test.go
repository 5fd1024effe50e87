package ringvalkey_test

import (
	"context"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/ringcache/ringcache/adapters/internal/neartest"
	"github.com/ringcache/ringcache/adapters/ringvalkey"
)

// What the tests of all near caches show of this one.

var target = neartest.Target{
	Programs: []string{"valkey-server"},
	Connect:  connect,
}

func TestReplies(t *testing.T)     { neartest.Replies(t, target) }
func TestConnections(t *testing.T) { neartest.Connections(t, target) }
func TestCluster(t *testing.T)     { neartest.Cluster(t, target) }
func TestSoak(t *testing.T)        { neartest.Soak(t, target) }

func connect(c neartest.Config) (neartest.Client, error) {
	o := valkey.ClientOption{
		InitAddress:       c.Addrs,
		ForceSingleClient: len(c.Addrs) == 1,
		ClientName:        c.Name,
		SelectDB:          c.DB,
		PipelineMultiplex: c.Multiplex,
		ConnWriteTimeout:  c.ConnWriteTimeout,
		DisableCache:      c.Cache == nil,
	}
	o.Dialer.KeepAlive = c.KeepAlive
	if c.Cache != nil {
		o.NewCacheStoreFn = ringvalkey.NewStore(c.Cache)
	}
	r, err := valkey.NewClient(o)
	return client{r}, err
}

// client is a neartest.Client.
type client struct{ r valkey.Client }

func (c client) Close() { c.r.Close() }

// command builds a command. It is pinned, since a client that sends a command again may reuse
// its memory while the writer of a lost connection still reads it, which is a race.
func (c client) command(words []string) valkey.Completed {
	switch {
	case words[0] == "MGET":
		return c.r.B().Mget().Key(words[1:]...).Build().Pin()
	case len(words) == 1:
		return c.r.B().Arbitrary(words[0]).Build().Pin()
	}
	return c.r.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build().Pin()
}

func (c client) Do(ctx context.Context, words ...string) neartest.Reply {
	return replyOf(c.r.Do(ctx, c.command(words)))
}

func (c client) DoCache(
	ctx context.Context, ttl time.Duration, words ...string,
) neartest.Reply {
	return replyOf(c.r.DoCache(ctx, valkey.Cacheable(c.command(words)), ttl))
}

func (c client) DoStatic(
	ctx context.Context, ttl time.Duration, words ...string,
) neartest.Reply {
	return replyOf(c.r.DoCache(ctx, valkey.Cacheable(c.command(words)).ToStaticTTL(), ttl))
}

func (c client) DoMulti(
	ctx context.Context, ttl time.Duration, commands ...[]string,
) (replies []neartest.Reply) {
	var multi []valkey.CacheableTTL
	for _, words := range commands {
		multi = append(multi, valkey.CT(valkey.Cacheable(c.command(words)), ttl))
	}
	for _, result := range c.r.DoMultiCache(ctx, multi...) {
		replies = append(replies, replyOf(result))
	}
	return replies
}

func (c client) MGet(
	ctx context.Context, ttl time.Duration, keys ...string,
) (map[string]string, error) {
	messages, err := valkey.MGetCache(c.r, ctx, ttl, keys)
	values := map[string]string{}
	for key, message := range messages {
		if value, err := message.ToString(); err == nil {
			values[key] = value
		}
	}
	return values, err
}

func replyOf(r valkey.ValkeyResult) neartest.Reply {
	value, err := r.ToAny()
	reply := neartest.Reply{Value: value, Err: err, Hit: r.IsCacheHit(),
		TTL: r.CacheTTL(), PXAT: r.CachePXAT()}
	if valkey.IsValkeyNil(err) {
		reply.Nil, reply.Err = true, nil
	}
	return reply
}
