package ringmiddleware

import (
	"cmp"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const swr, sie = "stale-while-revalidate=30", "stale-if-error=40"

// background lets directives have their say: without it nothing is asked in the background.
var background = Options{StaleWhileRevalidate: time.Second}

// windows are times after the lifetime of a response: it is served while it is updated, served if
// the handler fails, over. fail says whether the handler fails on its second call.
var windows = []struct {
	name, control string
	o             Options
	after         time.Duration
	fail          bool
	code          int
	body          string
}{
	{"fresh", "max-age=60, " + swr, background, 59 * time.Second, false, 200, "1"},
	{"while updating", "max-age=60, " + swr, background, 89 * time.Second, false, 200, "1"},
	{"and failing", "max-age=60, " + swr, background, 89 * time.Second, true, 200, "1"},
	{"over", "max-age=60, " + swr, background, 91 * time.Second, false, 200, "2"},
	{"over and failing", "max-age=60, " + swr, background, 91 * time.Second, true, 503, "2"},
	{"no error", "max-age=60, " + sie, Options{}, 70 * time.Second, false, 200, "2"},
	{"error", "max-age=60, " + sie, Options{}, 99 * time.Second, true, 200, "1"},
	{"error too late", "max-age=60, " + sie, Options{}, 101 * time.Second, true, 503, "2"},
	{"both", "max-age=60, " + swr + ", " + sie, background, 95 * time.Second, true, 200, "1"},
	{"at once", "max-age=0, " + swr, background, 10 * time.Second, false, 200, "1"},
	{"not asked for", "max-age=60, " + swr, Options{}, 61 * time.Second, false, 200, "2"},
	{"option, updating", "max-age=60", Options{StaleWhileRevalidate: 30 * time.Second},
		89 * time.Second, false, 200, "1"},
	{"option, error", "max-age=60", Options{StaleIfError: 40 * time.Second},
		99 * time.Second, true, 200, "1"},
	{"option, over", "max-age=60", Options{StaleIfError: 40 * time.Second},
		101 * time.Second, true, 503, "2"},
	{"the header goes first", "max-age=60, stale-if-error=0",
		Options{StaleIfError: 40 * time.Second}, 61 * time.Second, true, 503, "2"},
	{"must-revalidate", "max-age=60, must-revalidate, " + sie + ", " + swr,
		Options{StaleIfError: time.Hour, StaleWhileRevalidate: time.Hour},
		61 * time.Second, true, 503, "2"},
	{"proxy-revalidate", "max-age=60, proxy-revalidate, " + sie + ", " + swr, Options{},
		61 * time.Second, true, 503, "2"},
	{"s-maxage and an option", "s-maxage=60", Options{StaleIfError: time.Hour},
		61 * time.Second, true, 503, "2"},
	{"s-maxage with its own word", "s-maxage=60, " + sie, Options{},
		61 * time.Second, true, 200, "1"},
}

func TestStale_Windows(t *testing.T) {
	for _, c := range windows {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				r := newTimedRig(t, c.o, func(w http.ResponseWriter, _ *http.Request) {
					if n++; n == 2 && c.fail {
						w.WriteHeader(http.StatusServiceUnavailable)
					} else {
						w.Header().Set("Cache-Control", c.control)
					}
					_, _ = fmt.Fprint(w, n)
				})
				require.Equal(t, "1", r.get("/").body)
				time.Sleep(c.after)
				a := r.get("/")
				require.Equal(t, c.code, a.code)
				require.Equal(t, c.body, a.body)
				if c.body == "1" {
					require.Equal(t, fmt.Sprint(int(c.after/time.Second)), a.header.Get("Age"))
				}
				synctest.Wait()
			})
		})
	}
}

// A request that sets bounds on the age wants nothing stale.
func TestStale_RequestsThatWantNone(t *testing.T) {
	for _, control := range []string{"no-cache", "max-age=1000", "min-fresh=0"} {
		synctest.Test(t, func(t *testing.T) {
			r := newTimedRig(t, Options{StaleWhileRevalidate: time.Hour}, counts(fresh))
			r.get("/")
			time.Sleep(61 * time.Second)
			require.Equal(t, "2", r.get("/", "Cache-Control: "+control).body)
		})
	}
}

// An option that is off now has no effect on what was stored while it was on, as in a file.
func TestStale_OptionThatIsOffNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, Options{StaleWhileRevalidate: time.Hour}, counts(fresh))
		r.get("/")
		time.Sleep(61 * time.Second)
		r.m.options.StaleWhileRevalidate = 0
		require.Equal(t, "2", r.get("/").body)
	})
}

// While a response is updated in the background, all get the old one at once; then the new one.
func TestStale_OneUpdateForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := newTimedRig(t, background, func(w http.ResponseWriter, req *http.Request) {
			n++
			if n > 1 {
				time.Sleep(5 * time.Second)
			}
			const control = "Cache-Control: max-age=10, stale-while-revalidate=20"
			says(fmt.Sprint("hello ", n), control)(w, req)
		})
		etag := r.get("/").header.Get("ETag")
		time.Sleep(15 * time.Second)
		begun := time.Now()
		require.Equal(t, 304, r.get("/", "If-None-Match: "+etag).code)
		require.Equal(t, "he", r.get("/", "Range: bytes=0-1").body)
		require.Equal(t, 200, r.do(http.MethodHead, "/").code)
		a := r.get("/")
		require.Equal(t, "hello 1", a.body)
		require.Equal(t, "hit; ttl=-5", a.status())
		require.Equal(t, "15", a.header.Get("Age"))
		require.Zero(t, time.Since(begun), "nobody has waited")
		synctest.Wait()
		r.wantAsked(2)
		time.Sleep(6 * time.Second)
		a = r.get("/")
		require.Equal(t, "hello 2", a.body)
		require.Equal(t, "6", a.header.Get("Age"))
		r.wantAsked(2)
	})
}

// The update is for the whole response, whatever the request was that began it.
func TestStale_UpdateIsOfAWholeGet(t *testing.T) {
	for _, header := range []string{"Range: bytes=0-1", `If-None-Match: "2"`, "X-Nothing: 1"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			synctest.Test(t, func(t *testing.T) {
				r := newTimedRig(t, Options{StaleWhileRevalidate: time.Hour},
					func(w http.ResponseWriter, req *http.Request) {
						require.Empty(t, req.Header.Get("Range"))
						require.Contains(t, []string{"", `"1"`}, req.Header.Get("If-None-Match"),
							"the tag of the stored response")
						require.Equal(t, http.MethodGet, req.Method)
						says("hello", fresh, `ETag: "1"`)(w, req)
					})
				r.get("/")
				time.Sleep(61 * time.Second)
				r.do(method, "/", header)
				synctest.Wait()
				r.wantAsked(2)
				require.Equal(t, "hello", r.get("/").body)
				r.wantAsked(2)
			})
		}
	}
}

// The first request after the lifetime begins the update, and is gone when it ends.
func TestStale_UpdateOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := newTimedRig(t, Options{StaleWhileRevalidate: time.Hour, RevalidateTimeout: time.Hour},
			func(w http.ResponseWriter, req *http.Request) {
				if n++; n > 1 {
					time.Sleep(time.Minute)
					if req.Context().Err() != nil {
						return
					}
				}
				says(fmt.Sprint(n), "Cache-Control: max-age=600")(w, req)
			})
		r.get("/")
		time.Sleep(601 * time.Second)
		require.Equal(t, "1", r.get("/").body)
		time.Sleep(61 * time.Second)
		require.Equal(t, "2", r.get("/").body)
		r.wantAsked(2)
	})
}

// A request that cannot be answered by the old response does not wait for the update, which may
// hang: it goes to the handler itself. What the update brings after all is not kept, also if
// that would not be kept by itself, or is longer than is kept.
func TestStale_NobodyWaitsForTheUpdate(t *testing.T) {
	for _, control := range []string{"max-age=600", "private"} {
		for _, obedient := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int64
				told := make(chan error, 1)
				r := newTimedRig(t, Options{StaleWhileRevalidate: 10 * time.Second},
					func(w http.ResponseWriter, req *http.Request) {
						at, control := n.Add(1), control
						if at == 2 {
							if obedient {
								<-req.Context().Done()
							} else {
								time.Sleep(time.Minute)
							}
							told <- req.Context().Err()
						} else {
							control = "max-age=600"
						}
						says(fmt.Sprint(at), "Cache-Control: "+control)(w, req)
					})
				r.get("/")
				time.Sleep(605 * time.Second)
				require.Equal(t, "1", r.get("/").body) // begins the update
				time.Sleep(10 * time.Second)           // the window is over, the update is not
				begun := time.Now()
				answers := r.sendMany(5, http.MethodGet, "/")
				for _, a := range answers() {
					require.Equal(t, "3", a.body)
				}
				require.Zero(t, time.Since(begun))
				time.Sleep(2 * time.Minute)
				require.Error(t, <-told, "nobody wants it any more")
				require.Equal(t, "3", r.get("/").body)
				r.wantAsked(3)
			})
		}
	}
}

// An update that another call has replaced is no failure of the handler: no pause follows.
func TestStale_ReplacedUpdateIsNoFailure(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			r := newTimedRig(t, Options{StaleWhileRevalidate: 10 * time.Second},
				func(w http.ResponseWriter, req *http.Request) {
					at := n.Add(1)
					if at == 2 {
						<-req.Context().Done()
						time.Sleep(500 * time.Millisecond)
						if panics {
							panic(http.ErrAbortHandler)
						}
					}
					says(fmt.Sprint(at), "Cache-Control: max-age=1")(w, req)
				})
			r.get("/")
			time.Sleep(5 * time.Second)
			require.Equal(t, "1", r.get("/").body) // begins the update
			time.Sleep(10 * time.Second)           // the window is over, the update is not
			require.Equal(t, "3", r.get("/").body)
			time.Sleep(1200 * time.Millisecond)
			require.Equal(t, "3", r.get("/").body)
			synctest.Wait()
			r.wantAsked(4)
		})
	}
}

// An update has a deadline. One that is late changes nothing, and another begins.
func TestStale_UpdateHasADeadline(t *testing.T) {
	for _, timeout := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			o := Options{StaleWhileRevalidate: time.Hour, RevalidateTimeout: timeout}
			r := newTimedRig(t, o,
				func(w http.ResponseWriter, req *http.Request) {
					if n++; n == 2 {
						<-req.Context().Done() // and nothing is written, as many do then
						return
					}
					says(fmt.Sprint(n), "Cache-Control: max-age=600")(w, req)
				})
			r.get("/")
			time.Sleep(601 * time.Second)
			require.Equal(t, "1", r.get("/").body)
			time.Sleep(cmp.Or(timeout, 30*time.Second) - 1)
			require.Equal(t, "1", r.get("/").body)
			synctest.Wait()
			r.wantAsked(2)
			time.Sleep(1 * time.Nanosecond)
			synctest.Wait()
			require.Equal(t, "1", r.get("/").body, "the old one stays")
			synctest.Wait()
			r.wantAsked(2)
			time.Sleep(cmp.Or(timeout, 30*time.Second))
			require.Equal(t, "1", r.get("/").body)
			synctest.Wait()
			r.wantAsked(3)
			require.Equal(t, "3", r.get("/").body)
		})
	}
}

// A panic in the background is logged, ends nothing, and what there is stays.
func TestStale_PanicInTheBackground(t *testing.T) {
	for value, logged := range map[any]bool{"on purpose": true, http.ErrAbortHandler: false} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			r := newTimedRig(t, Options{StaleWhileRevalidate: time.Hour},
				func(w http.ResponseWriter, req *http.Request) {
					if n++; n == 2 {
						panic(value)
					}
					says(fmt.Sprint(n), fresh)(w, req)
				})
			r.get("/")
			time.Sleep(61 * time.Second)
			require.Equal(t, "1", r.get("/").body)
			synctest.Wait()
			if logged {
				require.Contains(t, r.logged.String(), "panic: on purpose")
			} else {
				require.Empty(t, r.logged.String())
			}
			time.Sleep(defaultRevalidateTimeout)
			require.Equal(t, "1", r.get("/").body)
			synctest.Wait()
			require.Equal(t, "3", r.get("/").body)
			r.wantAsked(3)
		})
	}
}

// What an update brings may not be for the cache: then what there was goes, and an endless
// answer is stopped.
func TestStale_UpdateBringsNothingToKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, stopped := 0, false
		r := newTimedRig(t, Options{StaleWhileRevalidate: time.Hour},
			func(w http.ResponseWriter, req *http.Request) {
				n++
				if n == 1 {
					says("1", fresh)(w, req)
					return
				}
				w.Header().Set("Cache-Control", "private")
				_, err := fmt.Fprint(w, n)
				if n == 2 {
					require.Error(t, err)
					<-req.Context().Done()
					stopped = true
				}
			})
		r.get("/")
		time.Sleep(61 * time.Second)
		require.Equal(t, "1", r.get("/").body)
		synctest.Wait()
		require.True(t, stopped)
		require.Equal(t, "3", r.get("/").body)
		require.Equal(t, "4", r.get("/").body)
	})
}

// While the handler fails, one call in a time is made, and all get what there was.
func TestStale_ErrorsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		r := newTimedRig(t, Options{StaleIfError: time.Hour},
			func(w http.ResponseWriter, req *http.Request) {
				if failing.Load() {
					time.Sleep(time.Second)
					http.Error(w, "broken", http.StatusBadGateway)
					return
				}
				says("good", fresh)(w, req)
			})
		r.get("/")
		time.Sleep(2 * time.Minute)
		failing.Store(true)
		answers := r.sendMany(10, http.MethodGet, "/")
		for _, a := range answers() {
			require.NoError(t, a.err)
			require.Equal(t, 200, a.code)
			require.Equal(t, "good", a.body)
			require.Empty(t, a.header.Get("X-Content-Type-Options"), "a header of the error")
			require.Equal(t, "121", a.header.Get("Age"))
		}
		require.LessOrEqual(t, r.asked.Load(), int64(2))
		require.Equal(t, "hit; ttl=-61", r.get("/").status(), "it has just failed")
		time.Sleep(firstPause)
		require.Equal(t, "fwd=stale; fwd-status=502", r.get("/").status())
		require.Equal(t, 502, r.get("/", "Cache-Control: no-cache").code, "it wants no old one")
		require.Equal(t, 404, r.get("/", "Cache-Control: only-if-cached, max-age=1").code/504*404)
		failing.Store(false)
		time.Sleep(2 * firstPause)
		require.Equal(t, "fwd=stale; fwd-status=200; stored", r.get("/").status())
	})
}

// A request that accepts no response as old as the one that is there gets the error, even if that
// one could be revalidated.
func TestStale_RequestWantsNoOldResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, own := range []string{"", ", must-revalidate"} {
			failing := false
			r := newTimedRig(t, Options{StaleIfError: time.Hour},
				func(w http.ResponseWriter, req *http.Request) {
					if failing {
						w.WriteHeader(503)
						return
					}
					w.Header().Set("ETag", `"one"`)
					says("good", fresh+own)(w, req)
				})
			r.get("/")
			failing = true
			for _, asks := range []string{"no-cache", "max-age=0", "min-fresh=61"} {
				time.Sleep(time.Second)
				require.Equal(t, 503, r.get("/", "Cache-Control: "+asks).code, asks+own)
			}
			require.Equal(t, 200, r.get("/").code)
			time.Sleep(2 * time.Minute)
			require.Equal(t, 503, r.get("/", "Cache-Control: min-fresh=1").code, own)
			require.Equal(t, map[bool]int{true: 200, false: 503}[own == ""], r.get("/").code)
		}
	})
}

// 500, 502, 503 and 504 are errors; other codes are answers.
func TestStale_WhichErrors(t *testing.T) {
	for code, covered := range map[int]bool{
		500: true, 502: true, 503: true, 504: true, 501: false, 505: false, 404: false, 403: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			r := newTimedRig(t, Options{StaleIfError: time.Hour},
				func(w http.ResponseWriter, req *http.Request) {
					if n++; n > 1 {
						w.WriteHeader(code)
						return
					}
					says("good", fresh)(w, req)
				})
			r.get("/")
			time.Sleep(2 * time.Minute)
			want := code
			if covered {
				want = 200
			}
			require.Equal(t, want, r.get("/").code)
		})
	}
}
