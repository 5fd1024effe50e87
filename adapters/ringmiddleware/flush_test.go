package ringmiddleware

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// flushing returns a handler that answers with the number of the call in two parts, the way of a
// reverse proxy. They are so far apart.
func flushing(apart time.Duration, header ...string) http.HandlerFunc {
	h := counts(header...)
	return func(w http.ResponseWriter, req *http.Request) {
		h(w, req)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(apart):
		case <-req.Context().Done():
			return
		}
		_, _ = io.WriteString(w, ".")
	}
}

// A flushed response that may be stored is shared by all that wait for it, as any other one.
func TestFlush_OneCallForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, Options{}, flushing(flushWait/2, fresh))
		answers := r.sendMany(20, http.MethodGet, "/")
		shared := 0
		for _, a := range answers() {
			require.NoError(t, a.err)
			require.Equal(t, "1.", a.body)
			if a.status() == "fwd=uri-miss; collapsed" {
				shared++
			}
		}
		require.Equal(t, 19, shared)
		r.wantAsked(1)
	})
}

// If the rest takes long, because the handler or the client is slow, the others wait no longer.
func TestFlush_SlowRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, Options{}, flushing(5*flushWait, fresh))
		first := r.sendMany(1, http.MethodGet, "/")
		synctest.Wait()
		others := r.sendMany(7, http.MethodGet, "/")
		synctest.Wait()
		r.wantAsked(1)
		time.Sleep(flushWait)
		synctest.Wait()
		r.wantAsked(8) // and no one waits for another call
		require.Equal(t, "1.", first()[0].body)
		var bodies []string
		for _, a := range others() {
			bodies = append(bodies, a.body)
		}
		require.ElementsMatch(t, []string{"2.", "3.", "4.", "5.", "6.", "7.", "8."}, bodies)
		r.get("/") // stored all the same
		r.wantAsked(8)
	})
}

// The client that the response is streamed to goes away, and another one waits for it.
func TestFlush_FirstLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, Options{}, flushing(flushWait/2, fresh))
		resp, err := r.client.Get(r.url)
		require.NoError(t, err)
		second := r.sendMany(1, http.MethodGet, "/")
		synctest.Wait()
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "1.", second()[0].body)
		require.Equal(t, "1.", r.get("/").body)
		r.wantAsked(1)
	})
}

// The client that the response is streamed to goes away, and the handler ends if a flush fails.
func TestFlush_FirstLeavesAHandlerThatChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan struct{})
		r := newTimedRig(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			addLines(w.Header(), lines(fresh))
			for n := range 8 {
				_, _ = fmt.Fprint(w, n)
				if err := http.NewResponseController(w).Flush(); err != nil {
					return
				}
				<-left
			}
		})
		resp, err := r.client.Get(r.url)
		require.NoError(t, err)
		second := r.sendMany(1, http.MethodGet, "/")
		synctest.Wait()
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
		close(left)
		require.Equal(t, "01234567", second()[0].body)
		require.Equal(t, "01234567", r.get("/").body)
		r.wantAsked(1)
	})
}

// Nobody waits, and the flush fails before the context of the request ends.
func TestFlush_FailsBeforeTheContextEnds(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	client := &flushable{}
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		addLines(w.Header(), lines(fresh))
		for n := range 3 {
			_, _ = fmt.Fprint(w, n)
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			client.gone = true
		}
	}))
	h.ServeHTTP(client, newRequest("/"))
	var second recording
	h.ServeHTTP(&second, newRequest("/"))
	require.Equal(t, "012", second.body.String())
}

// A handler that is told of the client's error may end, so its response is not complete.
func TestFlush_FailsForALongBody(t *testing.T) {
	_, m := newMiddleware(t, Options{MaxBody: 10})
	client := &flushable{}
	calls := 0
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		says("more than MaxBody", fresh)(w, nil)
		client.gone = true
		require.ErrorIs(t, http.NewResponseController(w).Flush(), errGone)
	}))
	for range 2 {
		client.gone = false
		h.ServeHTTP(client, newRequest("/"))
	}
	require.Equal(t, 2, calls)
}

// A client that cannot be flushed to has not gone.
func TestFlush_NotSupported(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	calls := 0
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		says("a", fresh)(w, nil)
		require.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
		says("b")(w, nil)
	}))
	for range 2 {
		var client recording
		h.ServeHTTP(&client, newRequest("/"))
		require.Equal(t, "ab", client.body.String())
	}
	require.Equal(t, 1, calls)
}

// flushable is a client whose Flush fails if it has gone.
type flushable struct{ recording }

func (w *flushable) FlushError() error {
	if w.gone {
		return errGone
	}
	return nil
}

// In the background, there is nobody to flush to.
func TestFlush_InTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, background, flushing(time.Second, "Cache-Control: max-age=10, "+swr))
		require.Equal(t, "1.", r.get("/").body)
		time.Sleep(11 * time.Second)
		require.Equal(t, "1.", r.get("/").body)
		time.Sleep(2 * time.Second)
		require.Equal(t, "2.", r.get("/").body)
		r.wantAsked(2)
	})
}

// With Options.TTL alone, a flushed response is taken for a stream.
func TestFlush_StreamInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		o := Options{TTL: 10 * time.Second, StaleWhileRevalidate: time.Hour}
		r := newTimedRig(t, o, func(w http.ResponseWriter, req *http.Request) {
			if n++; n == 1 {
				_, _ = fmt.Fprint(w, "page")
				return
			}
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
		})
		for range 2 {
			require.Equal(t, "page", r.get("/").body)
			time.Sleep(11 * time.Second)
		}
		synctest.Wait()
		r.wantAsked(2)
	})
}
