package neartest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

func connectRueidis(c config) (client, error) {
	o := rueidis.ClientOption{
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
		o.NewCacheStoreFn = ringrueidis.NewStore(c.cache)
	}
	r, err := rueidis.NewClient(o)
	return rueidisClient{r}, err
}

type rueidisClient struct{ rueidis.Client }

func (c rueidisClient) close() { c.Close() }

// command builds a command. It is pinned, since a client that sends a command again may reuse its
// memory while the writer of a lost connection still reads it, which is a race.
func (c rueidisClient) command(words []string) rueidis.Completed {
	switch {
	case words[0] == "MGET":
		return c.B().Mget().Key(words[1:]...).Build().Pin()
	case len(words) == 1:
		return c.B().Arbitrary(words[0]).Build().Pin()
	}
	return c.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build().Pin()
}

func (c rueidisClient) do(ctx context.Context, words ...string) reply {
	return rueidisReply(c.Do(ctx, c.command(words)))
}

func (c rueidisClient) pipeline(ctx context.Context, commands ...[]string) (replies []reply) {
	var multi []rueidis.Completed
	for _, words := range commands {
		multi = append(multi, c.command(words))
	}
	for _, result := range c.DoMulti(ctx, multi...) {
		replies = append(replies, rueidisReply(result))
	}
	return replies
}

func (c rueidisClient) doCache(ctx context.Context, ttl time.Duration, words ...string) reply {
	return rueidisReply(c.DoCache(ctx, rueidis.Cacheable(c.command(words)), ttl))
}

func (c rueidisClient) get(key string) (value string, hit bool) {
	result := c.DoCache(ctx, c.B().Get().Key(key).Cache(), hour)
	value, _ = result.ToString()
	return value, result.IsCacheHit()
}

func (c rueidisClient) doStatic(ctx context.Context, ttl time.Duration, words ...string) reply {
	return rueidisReply(c.DoCache(ctx, rueidis.Cacheable(c.command(words)).ToStaticTTL(), ttl))
}

func (c rueidisClient) doMulti(
	ctx context.Context, ttl time.Duration, commands ...[]string,
) (replies []reply) {
	var multi []rueidis.CacheableTTL
	for _, words := range commands {
		multi = append(multi, rueidis.CT(rueidis.Cacheable(c.command(words)), ttl))
	}
	for _, result := range c.DoMultiCache(ctx, multi...) {
		replies = append(replies, rueidisReply(result))
	}
	return replies
}

func (c rueidisClient) mget(
	ctx context.Context, ttl time.Duration, keys ...string,
) (map[string]string, error) {
	messages, err := rueidis.MGetCache(c, ctx, ttl, keys)
	values := map[string]string{}
	for key, message := range messages {
		if value, err := message.ToString(); err == nil {
			values[key] = value
		}
	}
	return values, err
}

func rueidisReply(r rueidis.RedisResult) reply {
	value, err := r.ToAny()
	got := reply{value: value, err: err, hit: r.IsCacheHit(), ttl: r.CacheTTL(), pxat: r.CachePXAT()}
	if rueidis.IsRedisNil(err) {
		got.isNil, got.err = true, nil
	}
	return got
}

func TestStore_Rueidis(t *testing.T) {
	testStore[rueidis.RedisMessage, *rueidis.RedisMessage](t,
		func(cache *ringcache.Cache) store[rueidis.RedisMessage, rueidis.CacheEntry] {
			return ringrueidis.NewStore(cache)(rueidis.CacheStoreOption{})
		})
}
