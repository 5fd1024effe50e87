package neartest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReplies tests reads through a near cache of one server.
func TestReplies(t *testing.T) {
	runEach(t, map[string]func(*testing.T, target){
		"ChangesByAnotherClientAreSeen":  testChangesByAnotherClientAreSeen,
		"NoValueIsCached":                testNoValueIsCached,
		"ExpireShortensTheTimeToLive":    testExpireShortensTheTimeToLive,
		"TimeToLiveOfTheServer":          testTimeToLiveOfTheServer,
		"TimeToLiveOfTheCaller":          testTimeToLiveOfTheCaller,
		"StaticTTL":                      testStaticTTL,
		"KindsOfReplies":                 testKindsOfReplies,
		"ErrorsAreNotCached":             testErrorsAreNotCached,
		"ConcurrentReadsShareOneRequest": testConcurrentReadsShareOneRequest,
		"ManyKeysAtOnce":                 testManyKeysAtOnce,
		"MGetCommand":                    testMGetCommand,
		"CanceledRead":                   testCanceledRead,
		"ClientsShareACache":             testClientsShareACache,
		"MoreThanFits":                   testMoreThanFits,
	})
}

func testChangesByAnotherClientAreSeen(t *testing.T, target target) {
	r := newRig(t, target)
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

// A missing value is cached too, until there is one.
func testNoValueIsCached(t *testing.T, target target) {
	r := newRig(t, target)
	require.False(t, r.get("k").hit)
	r.requireRead("k", "")
	require.True(t, r.get("k").hit)
	r.write("SET", "k", "v")
	r.requireAfterRoundTrip("k", "v")
}

// EXPIRE is a change: the new time to live applies.
func testExpireShortensTheTimeToLive(t *testing.T, target target) {
	r := newRig(t, target)
	r.write("SET", "k", "v")
	r.requireCached("k", "v")
	require.Greater(t, r.get("k").ttl, int64(3000))
	r.write("EXPIRE", "k", "100")
	r.requireAfterRoundTrip("k", "v")
	require.LessOrEqual(t, r.get("k").ttl, int64(100))
}

// A reply expires with its key on the server, at the latest.
func testTimeToLiveOfTheServer(t *testing.T, target target) {
	r := newRig(t, target)
	var end int64
	for { // again, if a busy machine has let the key expire meanwhile
		r.write("SET", "k", "v", "PX", "300")
		expires := r.other.do(ctx, "PEXPIRETIME", "k")
		require.NoError(t, expires.err)
		end = expires.value.(int64)
		first, second := r.get("k"), r.get("k")
		if time.Now().UnixMilli() >= end {
			continue
		}
		for _, got := range []reply{first, second} {
			require.NoError(t, got.err)
			require.LessOrEqual(t, got.pxat, end+1) // the server's clock may lag by 1 ms
			require.Greater(t, got.pxat, end-200)
		}
		break
	}
	time.Sleep(time.Until(time.UnixMilli(end + 2)))
	r.requireRead("k", "")
}

func testTimeToLiveOfTheCaller(t *testing.T, target target) {
	r := newRig(t, target)
	r.write("SET", "k", "v")
	const ttl = 50 * time.Millisecond
	end := get(r.reader, "k", ttl).pxat
	require.LessOrEqual(t, end, time.Now().Add(ttl).UnixMilli())
	time.Sleep(time.Until(time.UnixMilli(end)))
	require.False(t, get(r.reader, "k", ttl).hit)
}

// With ToStaticTTL the client does not request the key's time to live. The key is still
// invalidated.
func testStaticTTL(t *testing.T, target target) {
	r := newRig(t, target)
	r.write("SET", "k", "v")
	static := func() reply { return r.reader.doStatic(ctx, hour, "GET", "k") }
	require.False(t, static().hit)
	require.True(t, static().hit)
	require.Positive(t, static().pxat)
	require.Zero(t, r.calls("pttl"))
	r.write("SET", "k", "new")
	r.requireAfterRoundTrip("k", "new")
}

// All kinds of replies are returned from the cache as the server sent them.
func testKindsOfReplies(t *testing.T, target target) {
	r := newRig(t, target)
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
			want := r.other.do(ctx, args...)
			for i := range 3 {
				got := r.reader.doCache(ctx, hour, args...)
				require.Equal(t, want.err, got.err)
				require.Equal(t, want.isNil, got.isNil)
				require.Equal(t, want.value, got.value)
				require.Equal(t, i > 0 && want.err == nil, got.hit)
			}
		})
	}
	r.write("DEL", "hash")
	for _, field := range []string{"f1", "f2"} {
		require.NoError(t, roundTrip(r.reader, "hash"))
		require.True(t, r.reader.doCache(ctx, hour, "HGET", "hash", field).isNil)
	}
}

func testErrorsAreNotCached(t *testing.T, target target) {
	r := newRig(t, target)
	r.write("RPUSH", "list", "a")
	for range 2 {
		require.ErrorContains(t, r.get("list").err, "WRONGTYPE")
	}
	require.Equal(t, 2, r.calls("get"))
}

// calls returns how often the server has run a command, including failures.
func (r *rig) calls(cmd string) int {
	r.t.Helper()
	stats := r.text("INFO", "commandstats")
	_, stats, found := strings.Cut(stats, "cmdstat_"+cmd+":calls=")
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(stats, ",")
	n, err := strconv.Atoi(number)
	require.NoError(r.t, err)
	return n
}

func testConcurrentReadsShareOneRequest(t *testing.T, target target) {
	r := newRig(t, target)
	r.write("SET", "k", "v")
	var wg sync.WaitGroup
	wg.Add(100)
	for range 100 {
		go func() {
			defer wg.Done()
			if got := r.get("k"); got.value != "v" || got.err != nil {
				t.Errorf("got %q, %v", got.value, got.err)
			}
		}()
	}
	wg.Wait()
	require.Equal(t, 1, r.calls("get"))
}

func testManyKeysAtOnce(t *testing.T, target target) {
	r := newRig(t, target)
	keys := []string{"a", "b", "none", "c"}
	for i, k := range []string{"a", "b", "c"} {
		r.write("SET", k, strconv.Itoa(i))
	}
	mget := func() map[string]string {
		t.Helper()
		got, err := r.reader.mget(ctx, hour, keys...)
		require.NoError(t, err)
		return got
	}
	doMulti := func() (got []string, hits int) {
		t.Helper()
		var multi [][]string
		for _, k := range keys {
			multi = append(multi, []string{"GET", k})
		}
		for _, reply := range r.reader.doMulti(ctx, hour, multi...) {
			require.NoError(t, reply.err)
			value, _ := reply.value.(string)
			got = append(got, value)
			if reply.hit {
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

// With the command MGET, each key is a separate entry. The client sends it on the
// connection of its first key, so these have the same slot.
func testMGetCommand(t *testing.T, target target) {
	r := newRig(t, target)
	const a, b, c = "{t}a", "{t}b", "{t}c"
	r.write("MSET", a, "0", b, "1")
	read := func(keys ...string) []any {
		t.Helper()
		got := r.reader.doCache(ctx, hour, append([]string{"MGET"}, keys...)...)
		require.NoError(t, got.err)
		return got.value.([]any)
	}
	require.Equal(t, []any{"0", "1"}, read(a, b))
	require.True(t, r.get(a).hit)
	require.Equal(t, []any{"1", "0", "1"}, read(b, a, b))
	require.Equal(t, 1, r.calls("mget"))
	r.write("SET", b, "new")
	r.requireAfterRoundTrip(b, "new")
	require.Equal(t, []any{"0", "new", nil}, read(a, b, c))
	require.Equal(t, 2, r.calls("mget"))
}

// A caller that gives up leaves no request in progress behind.
func testCanceledRead(t *testing.T, target target) {
	r := newRig(t, target)
	k := ""
	var err error
	for n := 0; err == nil; n++ { // on a busy machine, the pause may end before the read begins
		k = fmt.Sprint("k", n)
		r.write("SET", k, "v")
		r.write("CLIENT", "PAUSE", "100", "ALL")
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		err = r.reader.doCache(short, hour, "GET", k).err
		cancel()
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	r.requireAfterRoundTrip(k, "v")
}

// Several clients, each with its own connections, share one cache.
func testClientsShareACache(t *testing.T, target target) {
	r := newRig(t, target)
	cache := newCache(t)
	readers := make([]*rig, 3)
	r.write("SET", "k", "old")
	for i := range readers {
		readers[i] = &rig{t: t, server: r.server, other: r.other, reader: connect(t, target,
			config{addrs: r.addrs(), cache: cache, db: i / 2})}
	}
	readers[0].requireCached("k", "old")
	readers[1].requireCached("k", "old")
	readers[2].requireRead("k", "") // another database
	r.write("SET", "k", "new")
	readers[0].requireAfterRoundTrip("k", "new")
	readers[1].requireAfterRoundTrip("k", "new")
	readers[0].reader.close()
	r.write("SET", "k", "newer")
	readers[1].requireAfterRoundTrip("k", "newer")
}

// Values that do not all fit in the cache are read again, correctly.
func testMoreThanFits(t *testing.T, target target) {
	r := newRig(t, target)
	const n = 100
	value := strings.Repeat("v", 1<<20)
	for i := range n {
		r.write("SET", strconv.Itoa(i), strconv.Itoa(i)+value)
	}
	hits := 0
	for i := range 2 * n {
		k := strconv.Itoa(min(i, 2*n-1-i)) // up, and down again
		got := r.get(k)
		require.NoError(t, got.err)
		require.True(t, got.value == k+value)
		if got.hit {
			hits++
		}
	}
	require.Positive(t, hits)
	require.Less(t, hits, n)
}
