package ringrueidis_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

func TestRedis_ChangesByAnotherClientAreSeen(t *testing.T) {
	r := newRig(t)
	for name, test := range map[string]struct {
		change []string
		want   string // "": no value
	}{
		"SET":      {[]string{"SET", "k", "new"}, "new"},
		"APPEND":   {[]string{"APPEND", "k", "er"}, "older"},
		"DEL":      {[]string{"DEL", "k"}, ""},
		"UNLINK":   {[]string{"UNLINK", "k"}, ""},
		"GETDEL":   {[]string{"GETDEL", "k"}, ""},
		"EXPIRE":   {[]string{"EXPIRE", "k", "-1"}, ""},
		"RENAME":   {[]string{"RENAME", "k", "k2"}, ""},
		"COPY":     {[]string{"COPY", "src", "k", "REPLACE"}, "source"},
		"FLUSHDB":  {[]string{"FLUSHDB"}, ""},
		"FLUSHALL": {[]string{"FLUSHALL", "ASYNC"}, ""},
		"script":   {[]string{"EVAL", "redis.call('SET', KEYS[1], 'new')", "1", "k"}, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.write("SET", "k", "old")
			r.write("SET", "src", "source")
			require.NoError(t, roundTrip(r.reader, "k"))
			r.requireCached("k", "old")
			r.write(test.change...)
			r.requireAfterRoundTrip("k", test.want)
		})
	}
}

// That there is no value is cached too, until there is one.
func TestRedis_NoValueIsCached(t *testing.T) {
	r := newRig(t)
	require.True(t, rueidis.IsRedisNil(r.get("k").Error()))
	res := r.get("k")
	require.True(t, rueidis.IsRedisNil(res.Error()))
	require.True(t, res.IsCacheHit())
	r.write("SET", "k", "v")
	r.requireAfterRoundTrip("k", "v")
}

// EXPIRE is a change: the new time to live counts.
func TestRedis_ExpireShortensTheTimeToLive(t *testing.T) {
	r := newRig(t)
	r.write("SET", "k", "v")
	r.requireCached("k", "v")
	require.Greater(t, r.get("k").CacheTTL(), int64(3000))
	r.write("EXPIRE", "k", "100")
	r.requireAfterRoundTrip("k", "v")
	require.LessOrEqual(t, r.get("k").CacheTTL(), int64(100))
}

// A reply expires with its key on the server, at the latest.
func TestRedis_TimeToLiveOfTheServer(t *testing.T) {
	r := newRig(t)
	r.write("SET", "k", "v", "PX", "300")
	end, err := r.other.Do(ctx, r.other.B().Pexpiretime().Key("k").Build()).AsInt64()
	require.NoError(t, err)
	for range 2 {
		res := r.get("k")
		require.NoError(t, res.Error())
		require.LessOrEqual(t, res.CachePXAT(), end+1) // the server's clock may lag by 1 ms
		require.Greater(t, res.CachePXAT(), end-200)
	}
	time.Sleep(time.Until(time.UnixMilli(end + 2)))
	require.True(t, rueidis.IsRedisNil(r.get("k").Error()))
}

func TestRedis_TimeToLiveOfTheCaller(t *testing.T) {
	r := newRig(t)
	r.write("SET", "k", "v")
	const ttl = 50 * time.Millisecond
	end := get(r.reader, "k", ttl).CachePXAT()
	require.LessOrEqual(t, end, time.Now().Add(ttl).UnixMilli())
	time.Sleep(time.Until(time.UnixMilli(end)))
	require.False(t, get(r.reader, "k", ttl).IsCacheHit())
}

// With ToStaticTTL rueidis does not ask for the key's time to live. It is invalidated all the
// same.
func TestRedis_StaticTTL(t *testing.T) {
	r := newRig(t)
	r.write("SET", "k", "v")
	static := func() rueidis.RedisResult {
		return r.reader.DoCache(ctx, r.reader.B().Get().Key("k").Cache().ToStaticTTL(), hour)
	}
	require.False(t, static().IsCacheHit())
	require.True(t, static().IsCacheHit())
	require.Positive(t, static().CachePXAT())
	require.Zero(t, r.calls("pttl"))
	r.write("SET", "k", "new")
	r.requireAfterRoundTrip("k", "new")
}

// All kinds of replies come back from the cache as the server sent them.
func TestRedis_KindsOfReplies(t *testing.T) {
	r := newRig(t)
	r.write("SET", "s", strings.Repeat("long\x00\r\n", 1000))
	r.write("RPUSH", "list", "a", "", "c")
	r.write("HSET", "hash", "f1", "v1", "f2", "v2")
	r.write("SADD", "set", "m1")
	r.write("ZADD", "zset", "1.5", "a", "-inf", "b")
	r.write("GEOADD", "geo", "13.36", "38.11", "Palermo")
	for _, args := range [][]string{
		{"GET", "s"}, {"STRLEN", "s"}, {"GETRANGE", "s", "1", "2"}, {"GETRANGE", "s", "5", "3"},
		{"TYPE", "s"}, {"EXISTS", "s"}, {"GET", "none"}, {"LRANGE", "list", "0", "-1"},
		{"LLEN", "none"}, {"LRANGE", "none", "0", "-1"}, {"HGETALL", "hash"}, {"HGETALL", "none"},
		{"HGET", "hash", "f1"}, {"HGET", "hash", "f2"}, {"HGET", "hash", "f3"},
		{"HMGET", "hash", "f1", "none", "f2"}, {"HKEYS", "hash"}, {"SMEMBERS", "set"},
		{"SISMEMBER", "set", "m1"}, {"ZSCORE", "zset", "a"},
		{"ZRANGE", "zset", "0", "-1", "WITHSCORES"}, {"GEOPOS", "geo", "Palermo", "none"},
	} {
		t.Run(strings.Join(args[:min(3, len(args))], "_"), func(t *testing.T) {
			read := func() rueidis.RedisResult {
				return r.reader.DoCache(ctx, rueidis.Cacheable(arbitrary(r.reader, args)), hour)
			}
			want, wantErr := r.other.Do(ctx, arbitrary(r.other, args)).ToAny()
			for i := range 3 {
				res := read()
				got, err := res.ToAny()
				require.Equal(t, wantErr, err)
				require.Equal(t, want, got)
				if wantErr == nil || rueidis.IsRedisNil(wantErr) {
					require.Equal(t, i > 0, res.IsCacheHit())
				}
			}
		})
	}
	r.write("DEL", "hash")
	for _, field := range []string{"f1", "f2"} {
		require.NoError(t, roundTrip(r.reader, "hash"))
		cmd := r.reader.B().Hget().Key("hash").Field(field).Cache()
		require.True(t, rueidis.IsRedisNil(r.reader.DoCache(ctx, cmd, hour).Error()))
	}
}

// arbitrary builds a command whose second word is its key.
func arbitrary(c rueidis.Client, args []string) rueidis.Completed {
	return c.B().Arbitrary(args[0]).Keys(args[1]).Args(args[2:]...).Build()
}

func TestRedis_ErrorsAreNotCached(t *testing.T) {
	r := newRig(t)
	r.write("RPUSH", "list", "a")
	for range 2 {
		require.ErrorContains(t, r.get("list").Error(), "WRONGTYPE")
	}
	require.Equal(t, 2, r.calls("get"))
}

// calls returns how often the server has run a command, also without success.
func (r *rig) calls(cmd string) int {
	r.t.Helper()
	info := r.other.B().Info().Section("commandstats").Build()
	stats, err := r.other.Do(ctx, info).ToString()
	require.NoError(r.t, err)
	_, stats, found := strings.Cut(stats, "cmdstat_"+cmd+":calls=")
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(stats, ",")
	n, err := strconv.Atoi(number)
	require.NoError(r.t, err)
	return n
}

func TestRedis_ConcurrentReadsShareOneRequest(t *testing.T) {
	r := newRig(t)
	r.write("SET", "k", "v")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if got, err := r.get("k").ToString(); got != "v" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, r.calls("get"))
}

func TestRedis_ManyKeysAtOnce(t *testing.T) {
	r := newRig(t)
	keys := []string{"a", "b", "none", "c"}
	for i, k := range []string{"a", "b", "c"} {
		r.write("SET", k, strconv.Itoa(i))
	}
	mget := func() map[string]string {
		t.Helper()
		got := map[string]string{}
		res, err := rueidis.MGetCache(r.reader, ctx, hour, keys)
		require.NoError(t, err)
		for k, msg := range res {
			if s, err := msg.ToString(); err == nil {
				got[k] = s
			}
		}
		return got
	}
	doMulti := func() (got []string, hits int) {
		t.Helper()
		var multi []rueidis.CacheableTTL
		for _, k := range keys {
			multi = append(multi, rueidis.CT(r.reader.B().Get().Key(k).Cache(), hour))
		}
		for _, res := range r.reader.DoMultiCache(ctx, multi...) {
			s, err := res.ToString()
			require.True(t, err == nil || rueidis.IsRedisNil(err))
			got = append(got, s)
			if res.IsCacheHit() {
				hits++
			}
		}
		return got, hits
	}
	for range 2 {
		require.Equal(t, map[string]string{"a": "0", "b": "1", "c": "2"}, mget())
	}
	got, hits := doMulti()
	require.Equal(t, []string{"0", "1", "", "2"}, got)
	require.Equal(t, len(keys), hits, "MGET and GET share entries")

	r.write("MSET", "b", "new", "none", "some")
	require.NoError(t, roundTrip(r.reader, "b"))
	require.NoError(t, roundTrip(r.reader, "none"))
	got, hits = doMulti()
	require.Equal(t, []string{"0", "new", "some", "2"}, got)
	require.Equal(t, 2, hits)
	require.Equal(t, map[string]string{"a": "0", "b": "new", "none": "some", "c": "2"}, mget())
}

// With the command MGET, each key is a separate entry. rueidis sends it on the connection
// of its first key, so these have the same slot.
func TestRedis_MGetCommand(t *testing.T) {
	r := newRig(t)
	const a, b, c = "{t}a", "{t}b", "{t}c"
	r.write("MSET", a, "0", b, "1")
	read := func(keys ...string) []string {
		t.Helper()
		cmd := r.reader.B().Mget().Key(keys...).Cache()
		got, err := r.reader.DoCache(ctx, cmd, hour).AsStrSlice()
		require.NoError(t, err)
		return got
	}
	require.Equal(t, []string{"0", "1"}, read(a, b))
	require.True(t, r.get(a).IsCacheHit())
	require.Equal(t, []string{"1", "0", "1"}, read(b, a, b))
	require.Equal(t, 1, r.calls("mget"))
	r.write("SET", b, "new")
	r.requireAfterRoundTrip(b, "new")
	require.Equal(t, []string{"0", "new", ""}, read(a, b, c))
	require.Equal(t, 2, r.calls("mget"))
}

// A caller that gives up leaves no flight behind.
func TestRedis_CanceledRead(t *testing.T) {
	r := newRig(t)
	r.write("SET", "k", "v")
	r.write("CLIENT", "PAUSE", "100", "ALL")
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	err := r.reader.DoCache(short, r.reader.B().Get().Key("k").Cache(), hour).Error()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	r.requireAfterRoundTrip("k", "v")
}

// Several clients on one cache, of which each has its own connections.
func TestRedis_ClientsShareACache(t *testing.T) {
	r := newRig(t)
	newStore := ringrueidis.NewStore(newCache(t))
	readers := make([]*rig, 3)
	r.write("SET", "k", "old")
	for i := range readers {
		readers[i] = &rig{t: t, server: r.server, other: r.other, reader: connect(t,
			r.server.Addr(), rueidis.ClientOption{NewCacheStoreFn: newStore, SelectDB: i / 2})}
	}
	readers[0].requireCached("k", "old")
	readers[1].requireCached("k", "old")
	require.True(t, rueidis.IsRedisNil(readers[2].get("k").Error()), "another database")
	r.write("SET", "k", "new")
	readers[0].requireAfterRoundTrip("k", "new")
	readers[1].requireAfterRoundTrip("k", "new")
	readers[0].reader.Close()
	r.write("SET", "k", "newer")
	readers[1].requireAfterRoundTrip("k", "newer")
}

// More than the cache holds: values are read again, and are right.
func TestRedis_MoreThanFits(t *testing.T) {
	r := newRig(t)
	const n = 100
	value := strings.Repeat("v", 1<<20)
	for i := range n {
		r.write("SET", strconv.Itoa(i), strconv.Itoa(i)+value)
	}
	hits := 0
	for i := range 2 * n {
		k := strconv.Itoa(min(i, 2*n-1-i)) // up, and down again
		res := r.get(k)
		got, err := res.ToString()
		require.NoError(t, err)
		require.True(t, got == k+value)
		if res.IsCacheHit() {
			hits++
		}
	}
	require.Positive(t, hits)
	require.Less(t, hits, n)
}
