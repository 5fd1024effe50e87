package ringdebug

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestTopK_CountsAreWithinTheirErrors(t *testing.T) {
	const room = 100
	random := rand.New(rand.NewPCG(1, 2))
	popular := rand.NewZipf(random, 1.1, 1, 1<<16)
	exact, k := map[string]uint64{}, newTopK(room)
	var total uint64
	for range 50_000 {
		key, n := fmt.Sprint(popular.Uint64()), 1+random.Uint64N(3)
		exact[key] += n
		total += n
		k.add([]byte(key), n)
	}
	require.Equal(t, total, k.total)
	require.Len(t, k.byKey, room)
	var sum uint64
	for key, c := range k.byKey {
		require.Equal(t, key, c.key)
		require.Same(t, c, k.least[c.at])
		require.LessOrEqual(t, c.atLeast(), exact[key])
		require.GreaterOrEqual(t, c.count, exact[key])
		sum += c.count
	}
	require.Equal(t, total, sum)
	for key, n := range exact {
		if n > total/room {
			require.Contains(t, k.byKey, key)
		}
	}
	for i, c := range k.top(10) {
		require.Equal(t, fmt.Sprint(i), c.key, "in the order of the distribution")
	}
	require.Len(t, k.top(2*room), room)
	require.Empty(t, newTopK(room).top(10))
}

func TestPlace_ComesApart(t *testing.T) {
	long := string(make([]byte, 300))
	name := func(s string) *string { return &s }
	for _, namespace := range []*string{nil, name(""), name("n"), name(long)} {
		for _, k := range []string{"", "k", "\x00", long} {
			in, key := cutPlace(string(appendPlace(nil, namespace, []byte(k))))
			require.Equal(t, namespace, in)
			require.Equal(t, k, string(key))
		}
	}
}

func TestObserve_CostsNothingWhileNobodyWatches(t *testing.T) {
	var reads Reads
	k := []byte("key")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		reads.Observe(k)
		reads.ObserveIn("namespace", k)
	}))
	w := reads.start()
	reads.stop(w)
	require.Nil(t, reads.watches.Load())
	reads.Observe(k)
	require.Zero(t, w.keys.total)
}

func TestObserve_EachWatchHasItsOwnCount(t *testing.T) {
	var reads Reads
	first := reads.start()
	reads.Observe([]byte("a"))
	second := reads.start()
	reads.Observe([]byte("a"))
	reads.stop(first)
	reads.Observe([]byte("a"))
	reads.stop(second)
	require.EqualValues(t, 2, first.keys.total)
	require.EqualValues(t, 2, second.keys.total)
}

// However sparse the samples become, counts are about those of all reads.
func TestObserve_SamplesStandForAllReads(t *testing.T) {
	var reads Reads
	w := reads.start()
	const calls = 1 << 21
	var all sync.WaitGroup
	for g := range 2 {
		all.Go(func() {
			for i := range calls / 2 {
				k := []byte{byte(i >> 4), byte(i >> 12), byte(g)}
				if i%4 == 0 {
					k = []byte("hot")
				}
				reads.Observe(k)
			}
		})
	}
	all.Wait()
	reads.stop(w)
	require.Greater(t, w.mask.Load(), uint64(15))
	require.InEpsilon(t, calls, w.keys.total, 0.1)
	top := w.keys.top(1)[0]
	require.Equal(t, "\x00hot", top.key)
	require.InEpsilon(t, calls/4, top.count, 0.1)
}

func TestWatch_HotKeysAndRates(t *testing.T) {
	var reads Reads
	c := newCache(t, ringcache.Options{})
	set(t, c, "hit", "value")
	set(t, c.Namespace("tenant"), "k", "in the namespace")
	c.Has([]byte("hit"))
	s, h := pageOf(t, c, &reads, Options{ShowValues: true})
	h.during(func() {
		for i := range 100 {
			for _, key := range []string{"hit", "missing"}[:1+i%2] {
				reads.Observe([]byte(key))
				c.Has([]byte(key))
			}
		}
		reads.ObserveIn("tenant", []byte("k"))
		reads.ObserveIn("dropped", []byte("k"))
	})
	p := s.json(http.StatusOK, "cache", "pages", "seconds", "10")
	watched := p.Caches[0].Watched
	require.Equal(t, 10., watched.Seconds)
	require.EqualValues(t, 150, watched.Stats.GetCalls)
	require.EqualValues(t, 151, p.Caches[0].Stats.GetCalls)
	require.InDelta(t, 2./3, watched.HitRatio, 1e-9)
	hot := watched.HotKeys
	require.EqualValues(t, 152, hot.Reads)
	require.EqualValues(t, 1, hot.OneIn)
	require.Len(t, hot.Keys, 4)
	first, second := hot.Keys[0], hot.Keys[1]
	require.Equal(t, `"hit"`, first.Key)
	require.EqualValues(t, 100, first.AtLeast)
	require.EqualValues(t, 100, first.AtMost)
	require.InDelta(t, 100./152, first.Share, 1e-9)
	require.Equal(t, 5, first.ValueBytes)
	require.Empty(t, first.Value, "values are for one key only")
	require.Equal(t, `"missing"`, second.Key)
	require.False(t, second.Found)
	found := map[string]bool{}
	for _, k := range hot.Keys[2:] {
		found[*k.Namespace] = k.Found
	}
	require.Equal(t, map[string]bool{`"tenant"`: true, `"dropped"`: false}, found)

	html := s.html("cache", "pages", "seconds", "10")
	require.Contains(t, html, `href="?cache=pages&amp;key=%22hit%22"`)
	require.Contains(t, html, `namespace=%22tenant%22`)
	require.Contains(t, html, ">lookups hit</td><td class=\"n\">201</td><td class=\"n\">10</td>")
	require.Contains(t, s.html("seconds", "10"), `<td class="n">15</td>`, "of all caches")
	require.NotContains(t, s.html("cache", "pages"), "Hottest keys", "unless asked for")

	h.during(func() {})
	require.Contains(t, s.html("cache", "pages", "seconds", "1"), "No reads were reported")
	none, h := pageOf(t, c, nil, Options{})
	h.during(func() {})
	require.Contains(t, none.html("cache", "pages", "seconds", "1"), "does not report reads")
}

// A watch ends with its request.
func TestWatch_EndsWhenTheClientHasGone(t *testing.T) {
	var reads Reads
	s, h := pageOf(t, newCache(t, ringcache.Options{}), &reads, Options{})
	began := make(chan struct{})
	h.wait = func(ctx context.Context, _ time.Duration) (time.Duration, error) {
		close(began)
		return wait(ctx, time.Hour)
	}
	ctx, leave := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"?seconds=60", nil)
	require.NoError(t, err)
	left := make(chan error)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		left <- err
	}()
	<-began
	require.NotNil(t, reads.watches.Load())
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Eventually(t, func() bool {
		return reads.watches.Load() == nil && h.watching.Load() == 0
	}, 2*time.Minute, time.Millisecond)
}

func TestWatch_OnlySomeAtOnce(t *testing.T) {
	s, h := pageOf(t, newCache(t, ringcache.Options{}), nil, Options{})
	began, end := make(chan struct{}), make(chan struct{})
	h.during(func() {
		began <- struct{}{}
		<-end
	})
	var watching sync.WaitGroup
	for range maxWatches {
		watching.Go(func() { s.html("seconds", "1") })
		<-began
	}
	a := s.do(http.MethodGet, "seconds", "7")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.Equal(t, "7", a.Header.Get("Retry-After"))
	s.html() // what does not watch goes on
	close(end)
	watching.Wait()
	h.during(func() {})
	s.html("seconds", "1")
}

// The server's WriteTimeout does not end a watch.
func TestWatch_OutlastsTheWriteTimeout(t *testing.T) {
	h := New(Options{})
	server := httptest.NewUnstartedServer(h)
	server.Config.WriteTimeout = 10 * time.Second
	server.Start()
	defer server.Close()
	deadline := make(chan time.Time, 1)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(deadlines{w, deadline}, r)
	})
	h.during(func() {})
	from := time.Now()
	response, err := http.Get(server.URL + "?seconds=60")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.WithinRange(t, <-deadline, from.Add(70*time.Second), time.Now().Add(70*time.Second))
}

// deadlines tells which deadlines a handler sets.
type deadlines struct {
	http.ResponseWriter
	set chan time.Time
}

func (d deadlines) SetWriteDeadline(t time.Time) error {
	d.set <- t
	return http.NewResponseController(d.ResponseWriter).SetWriteDeadline(t)
}
