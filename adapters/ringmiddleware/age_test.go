package ringmiddleware

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// The age does not depend on how long the cache keeps the response.
func TestAge_WithAnIdleTime(t *testing.T) {
	for _, idle := range []time.Duration{10 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			failing := false
			o := Options{StaleWhileRevalidate: 20 * time.Second, StaleIfError: 100 * time.Second}
			r := newTimedRig(t, o, func(w http.ResponseWriter, req *http.Request) {
				if failing {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				says("page", "Cache-Control: max-age=600")(w, req)
			})
			cache, err := ringcache.NewWithOptions(ringcache.Options{
				MaxBytes: 32 << 20, ExpireAfterAccess: idle,
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, cache.Close()) }()
			r.m.store.cache = cache
			r.get("/")
			for range 150 { // reads keep it from being idle
				time.Sleep(4 * time.Second)
				require.Equal(t, 200, r.get("/").code)
				synctest.Wait()
			}
			require.Equal(t, "0", r.get("/").header.Get("Age"))
			r.wantAsked(2) // the second time in the background, after 600 seconds
			failing = true
			for range 160 {
				time.Sleep(4 * time.Second)
				require.Equal(t, 200, r.get("/").code)
				synctest.Wait()
			}
			require.Equal(t, "640", r.get("/").header.Get("Age"))
		})
	}
}

// A response that seems to come from the future has an unknown age, and is not fresh.
func TestAge_AfterTheClockWasSetBack(t *testing.T) {
	r := newRig(t, Options{}, counts(fresh))
	r.get("/")
	x := r.m.store.index(lower(r.url) + "/")
	key := r.m.store.entryKey(x, newRequest("/"))
	e, ok := decodeEntry(r.cache.Get(nil, key))
	require.True(t, ok)
	e.moment += time.Hour.Milliseconds()
	require.NoError(t, r.cache.Set(key, e.encode(nil)))
	require.Equal(t, "2", r.get("/").body)
	require.Equal(t, "2", r.get("/").body)
}

// Date has whole seconds: the part of a second that it leaves out is no age.
func TestAge_OfDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(900 * time.Millisecond)
		r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
			says("page", "Cache-Control: max-age=1")(w, req)
		})
		r.get("/")
		time.Sleep(800 * time.Millisecond)
		require.Equal(t, "hit; ttl=0", r.get("/").status())
	})
}

// A response that is fresh for too short a time to be stored answers the requests that wait for it.
func TestAge_TooShortToBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			time.Sleep(600 * time.Millisecond)
			says("page", "Cache-Control: max-age=1")(w, req)
		})
		for want := range int64(3) {
			for _, a := range r.sendMany(20, http.MethodGet, "/")() {
				require.Equal(t, "page", a.body)
			}
			r.wantAsked(want + 1)
		}
		require.Equal(t, "fwd=uri-miss; fwd-status=200", r.get("/").status())
	})
}

// A call that began earlier does not replace the response of a later one.
func TestAge_EarlierCallEndsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var version atomic.Int64
		r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			n := version.Add(1)
			if n == 1 {
				time.Sleep(10 * time.Second)
			}
			says(fmt.Sprint("version ", n), fresh)(w, req)
		})
		first := r.sendMany(1, http.MethodGet, "/")
		time.Sleep(time.Second)
		require.Equal(t, "version 2", r.get("/", "Cache-Control: no-cache").body)
		first()
		require.Equal(t, "version 2", r.get("/").body)
		require.EqualValues(t, 2, version.Load())
	})
}
