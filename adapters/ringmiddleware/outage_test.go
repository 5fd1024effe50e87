package ringmiddleware

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// failing is a page whose handler takes 300 ms and fails on demand.
type failing struct {
	code atomic.Int64 // 0: it does not fail, 1: it panics
	tag  string       // of the page
}

const slow = 300 * time.Millisecond

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(slow)
	switch code := int(f.code.Load()); code {
	case 0:
		says("page", fresh, f.tag)(w, r)
	case 1:
		panic("on purpose")
	default:
		w.Header().Set("X-Secret", "1")
		http.Error(w, "secret", code)
	}
}

// Those who wait for a call that fails get its code, without another wait and call. They see
// nothing else of the response, which may be for one client only.
func TestOutage_ErrorsAreShared(t *testing.T) {
	for _, code := range []int64{500, 502, 503, 504, 507, 1} {
		synctest.Test(t, func(t *testing.T) {
			var f failing
			f.code.Store(code)
			r := newTimedRig(t, Options{}, f.ServeHTTP)
			// On a connection that was used before, the client repeats a request after a panic.
			r.client.Transport.(*http.Transport).DisableKeepAlives = true
			for range 2 {
				r.asked.Store(0)
				begun := time.Now()
				first := r.sendMany(1, http.MethodGet, "/")
				time.Sleep(slow / 2)
				others := r.sendMany(9, http.MethodGet, "/")
				for _, a := range others() {
					require.EqualValues(t, max(code, 500), a.code)
					require.Equal(t, http.StatusText(a.code)+"\n", a.body)
					require.Empty(t, a.header.Values("X-Secret"))
					require.Contains(t, a.status(), "; collapsed")
				}
				require.Equal(t, slow, time.Since(begun))
				r.wantAsked(1)
				if code > 1 {
					require.Equal(t, "secret\n", first()[0].body)
				}
			}
			f.code.Store(0)
			require.Equal(t, "page", r.get("/").body)
		})
	}
}

// A refusal may be meant for one client.
func TestOutage_OtherCodesAreNotShared(t *testing.T) {
	for _, code := range []int64{403, 429} {
		synctest.Test(t, func(t *testing.T) {
			var f failing
			f.code.Store(code)
			r := newTimedRig(t, Options{}, f.ServeHTTP)
			for _, a := range r.sendMany(10, http.MethodGet, "/")() {
				require.Equal(t, "secret\n", a.body)
			}
			r.wantAsked(10)
		})
	}
}

// While a stale response may be served, one request in a pause waits for the handler, and all
// others get it at once. The pauses grow.
func TestOutage_StaleAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		r := newTimedRig(t, Options{StaleIfError: time.Hour}, f.ServeHTTP)
		r.get("/")
		time.Sleep(2 * time.Minute)
		f.code.Store(503)
		begun := time.Now()
		for _, a := range r.sendMany(10, http.MethodGet, "/")() {
			require.Equal(t, "page", a.body)
			require.Equal(t, "120", a.header.Get("Age"))
		}
		require.Equal(t, slow, time.Since(begun))
		r.wantAsked(2)
		calls, waits := r.asked.Load(), 0
		begun = time.Now()
		for time.Since(begun) < 2*time.Minute {
			sent := time.Now()
			a := r.get("/")
			require.Equal(t, "page", a.body)
			if time.Since(sent) == 0 {
				require.Regexp(t, `^hit; ttl=-\d+$`, a.status())
			} else {
				waits++
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.EqualValues(t, waits, r.asked.Load()-calls)
		require.InDelta(t, 7, waits, 1, "after 1, 2, 4, 8, 16, 30, 30 seconds")
		f.code.Store(0)
		time.Sleep(31 * time.Second)
		require.Equal(t, "fwd=stale; fwd-status=200; stored", r.get("/").status())
	})
}

// A request during the retry that follows a pause does not wait for it.
func TestOutage_OneRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		r := newTimedRig(t, Options{StaleIfError: time.Hour}, f.ServeHTTP)
		r.get("/")
		time.Sleep(2 * time.Minute)
		f.code.Store(503)
		r.get("/")
		time.Sleep(firstPause)
		first := r.sendMany(1, http.MethodGet, "/")
		time.Sleep(slow / 2)
		begun := time.Now()
		for _, a := range r.sendMany(9, http.MethodGet, "/")() {
			require.Equal(t, "page", a.body)
		}
		require.Zero(t, time.Since(begun))
		require.Equal(t, "page", first()[0].body)
		r.wantAsked(3)
	})
}

// However many pages fail, none is asked for again during its pause, and the pauses take no room.
func TestOutage_ManyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		r := newTimedRig(t, Options{StaleIfError: time.Hour},
			func(w http.ResponseWriter, req *http.Request) {
				if failing.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				says("page", fresh)(w, req)
			})
		const pages = 2000
		getAll := func() {
			for i := range pages {
				require.Equal(t, "page", r.get(fmt.Sprint("/", i)).body)
			}
		}
		getAll()
		time.Sleep(2 * time.Minute)
		failing.Store(true)
		entries := r.cache.Len()
		getAll()
		getAll()
		r.wantAsked(2 * pages)
		require.Equal(t, entries, r.cache.Len())
	})
}

// Calls that fail at the same time are one failure: the next call is after the first pause.
func TestOutage_FailuresAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := failing{tag: `ETag: "1"`}
		r := newTimedRig(t, Options{StaleIfError: time.Hour}, f.ServeHTTP)
		r.get("/")
		time.Sleep(2 * time.Minute)
		f.code.Store(503)
		r.sendMany(10, http.MethodGet, "/", "Cache-Control: no-cache")()
		r.wantAsked(11)
		time.Sleep(firstPause)
		r.get("/")
		r.wantAsked(12)
	})
}

// A request that must not wait for the handler is not the one that calls it after a pause.
func TestOutage_OnlyIfCachedIsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		r := newTimedRig(t, Options{StaleIfError: time.Hour}, f.ServeHTTP)
		r.get("/")
		time.Sleep(2 * time.Minute)
		f.code.Store(503)
		r.get("/")
		const only = "Cache-Control: only-if-cached"
		require.Equal(t, "page", r.get("/", only).body)
		time.Sleep(firstPause)
		require.Equal(t, 504, r.get("/", only).code)
		r.get("/")
		r.wantAsked(3)
	})
}

// A pause that seems to begin in the future is over: it began before the clock was set back.
func TestOutage_AfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		r := newTimedRig(t, Options{StaleIfError: 10 * time.Hour}, f.ServeHTTP)
		r.get("/")
		time.Sleep(2 * time.Minute)
		f.code.Store(503)
		r.get("/")
		key := r.m.store.entryKey(r.m.store.index(r.url+"/"), newRequest("/"))
		e, ok := decodeEntry(r.cache.Get(nil, key))
		require.True(t, ok)
		e.pauseEnd += time.Hour.Milliseconds()
		require.NoError(t, r.cache.Set(key, e.encode(nil)))
		r.get("/")
		r.wantAsked(3)
	})
}

// In the background as well, the first pause is a second, and the next ones twice as long each.
func TestOutage_PausesInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		o := Options{StaleWhileRevalidate: time.Hour, StaleIfError: time.Hour}
		r := newTimedRig(t, o, f.ServeHTTP)
		r.get("/")
		time.Sleep(2 * time.Minute)
		f.code.Store(503)
		begun := time.Now()
		var failed []int // the second of each call
		for time.Since(begun) < 20*time.Second {
			calls := r.asked.Load()
			require.Equal(t, "page", r.get("/").body)
			synctest.Wait()
			if r.asked.Load() > calls {
				failed = append(failed, int(time.Since(begun)/time.Second))
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, []int{0, 1, 3, 7, 16}, failed, "with 0.3 s for each call")
	})
}

// A panic is a failure too, and a request whose time ends while it waits gets the stale response.
func TestOutage_PanicsAndDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		r := newTimedRig(t, Options{StaleIfError: time.Hour}, f.ServeHTTP)
		r.get("/")
		time.Sleep(2 * time.Minute)
		first := r.sendMany(1, http.MethodGet, "/")
		time.Sleep(slow / 2)
		ctx, cancel := context.WithTimeout(context.Background(), slow/10)
		defer cancel()
		var late recording
		req := newRequest("/")
		req.Host = "in.memory"
		h := r.m.Handler(&f)
		h.ServeHTTP(&late, req.WithContext(ctx))
		require.Equal(t, "page", late.body.String())
		require.Equal(t, "120", late.header.Get("Age"))
		first()
		time.Sleep(2 * time.Minute)
		f.code.Store(1)
		require.Panics(t, func() { h.ServeHTTP(&recording{}, req) })
		require.Equal(t, "page", r.get("/").body)
		r.wantAsked(2)
	})
}

// A client that leaves is no failure of the handler, whether that answers with an error or panics
// as a reverse proxy does in the middle of a response.
func TestOutage_CanceledIsNoFailure(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"error": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"panic": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int64
				r := newTimedRig(t, Options{StaleIfError: time.Hour},
					func(w http.ResponseWriter, req *http.Request) {
						if n.Add(1) == 2 {
							<-req.Context().Done()
							fail(w)
							return
						}
						says("page", fresh)(w, req)
					})
				r.get("/")
				time.Sleep(2 * time.Minute)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				require.Error(t, r.send(ctx, http.MethodGet, "/").err)
				synctest.Wait()
				require.Equal(t, "fwd=stale; fwd-status=200; stored", r.get("/").status())
			})
		})
	}
}

// The pause begins with the header of an error, however long its body takes.
func TestOutage_LongError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		r := newTimedRig(t, Options{StaleIfError: time.Hour},
			func(w http.ResponseWriter, req *http.Request) {
				if failing.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
					time.Sleep(time.Minute)
				}
				says("page", fresh)(w, req)
			})
		r.get("/")
		time.Sleep(2 * time.Minute)
		failing.Store(true)
		first := r.sendMany(1, http.MethodGet, "/")
		synctest.Wait()
		for range 10 {
			require.Contains(t, r.send(t.Context(), http.MethodGet, "/").status(), "hit")
		}
		require.Equal(t, "page", first()[0].body)
		r.wantAsked(2)
	})
}

// stale-if-error is for HEAD and ranges too, with and without a validator.
func TestOutage_HeadAndRange(t *testing.T) {
	for _, tag := range []string{`ETag: "1"`, "X-Nothing: 1"} {
		for _, c := range []struct {
			method, header string
			code           int
			body           string
		}{
			{"HEAD", "X-Nothing: 1", 200, ""},
			{"GET", "Range: bytes=1-2", 206, "ag"},
			{"HEAD", "Range: bytes=1-2", 200, ""},
			{"GET", "Range: lines=1-2", 200, "page"},
		} {
			synctest.Test(t, func(t *testing.T) {
				f := failing{tag: tag}
				r := newTimedRig(t, Options{StaleIfError: time.Hour}, f.ServeHTTP)
				r.get("/")
				time.Sleep(2 * time.Minute)
				f.code.Store(503)
				for range 2 {
					a := r.do(c.method, "/", c.header)
					require.Equal(t, c.code, a.code)
					require.Equal(t, c.body, a.body)
					require.NotEmpty(t, a.header.Get("Age"))
				}
				r.wantAsked(2)
			})
		}
	}
}

// A Range of another unit than bytes is ignored.
func TestOutage_OtherRanges(t *testing.T) {
	r := newRig(t, Options{}, says("hello", fresh))
	r.get("/")
	for header, want := range map[string]string{
		"lines=1-2": "hello", "bytes": "hello", "items": "hello", "=1-2": "hello",
		"bytes=1-2": "el", "Bytes=1-2": "el", "\u212aytes=1-2": "hello",
	} {
		a := r.get("/", "Range: "+header)
		require.Equal(t, want, a.body, header)
		require.Contains(t, a.status(), "hit")
	}
	r.wantAsked(1)
}
