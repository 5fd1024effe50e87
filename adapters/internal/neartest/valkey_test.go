package neartest

import (
	"context"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringvalkey"
)

func connectValkey(c config) (client, error) {
	o := valkey.ClientOption{
		InitAddress:       c.addrs,
		ForceSingleClient: len(c.addrs) == 1,
		ClientName:        c.name,
		SelectDB:          c.db,
		PipelineMultiplex: c.multiplex,
		ConnWriteTimeout:  c.connWriteTimeout,
		DisableCache:      c.cache == nil && c.lruSize == 0,
		CacheSizeEachConn: c.lruSize,
	}
	o.Dialer.KeepAlive = c.keepAlive
	if c.cache != nil {
		o.NewCacheStoreFn = ringvalkey.NewStore(c.cache)
	}
	r, err := valkey.NewClient(o)
	return valkeyClient{r}, err
}

type valkeyClient struct{ valkey.Client }

func (c valkeyClient) close() { c.Close() }

// command builds a command. It is pinned, since a client that sends a command again may reuse its
// memory while the writer of a lost connection still reads it, which is a race.
func (c valkeyClient) command(words []string) valkey.Completed {
	switch {
	case words[0] == "MGET":
		return c.B().Mget().Key(words[1:]...).Build().Pin()
	case len(words) == 1:
		return c.B().Arbitrary(words[0]).Build().Pin()
	}
	return c.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build().Pin()
}

func (c valkeyClient) do(ctx context.Context, words ...string) reply {
	return valkeyReply(c.Do(ctx, c.command(words)))
}

func (c valkeyClient) pipeline(ctx context.Context, commands ...[]string) (replies []reply) {
	var multi []valkey.Completed
	for _, words := range commands {
		multi = append(multi, c.command(words))
	}
	for _, result := range c.DoMulti(ctx, multi...) {
		replies = append(replies, valkeyReply(result))
	}
	return replies
}

func (c valkeyClient) doCache(ctx context.Context, ttl time.Duration, words ...string) reply {
	return valkeyReply(c.DoCache(ctx, valkey.Cacheable(c.command(words)), ttl))
}

func (c valkeyClient) get(key string) (value string, hit bool) {
	result := c.DoCache(ctx, c.B().Get().Key(key).Cache(), hour)
	value, _ = result.ToString()
	return value, result.IsCacheHit()
}

func (c valkeyClient) doStatic(ctx context.Context, ttl time.Duration, words ...string) reply {
	return valkeyReply(c.DoCache(ctx, valkey.Cacheable(c.command(words)).ToStaticTTL(), ttl))
}

func (c valkeyClient) doMulti(
	ctx context.Context, ttl time.Duration, commands ...[]string,
) (replies []reply) {
	var multi []valkey.CacheableTTL
	for _, words := range commands {
		multi = append(multi, valkey.CT(valkey.Cacheable(c.command(words)), ttl))
	}
	for _, result := range c.DoMultiCache(ctx, multi...) {
		replies = append(replies, valkeyReply(result))
	}
	return replies
}

func (c valkeyClient) mget(
	ctx context.Context, ttl time.Duration, keys ...string,
) (map[string]string, error) {
	messages, err := valkey.MGetCache(c, ctx, ttl, keys)
	values := map[string]string{}
	for key, message := range messages {
		if value, err := message.ToString(); err == nil {
			values[key] = value
		}
	}
	return values, err
}

func valkeyReply(r valkey.ValkeyResult) reply {
	value, err := r.ToAny()
	got := reply{value: value, err: err, hit: r.IsCacheHit(), ttl: r.CacheTTL(), pxat: r.CachePXAT()}
	if valkey.IsValkeyNil(err) {
		got.isNil, got.err = true, nil
	}
	return got
}

func TestStore_Valkey(t *testing.T) {
	testStore[valkey.ValkeyMessage, *valkey.ValkeyMessage](t,
		func(cache *ringcache.Cache) store[valkey.ValkeyMessage, valkey.CacheEntry] {
			return ringvalkey.NewStore(cache)(valkey.CacheStoreOption{})
		})
}
