package ringmiddleware

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The hit ratio is that of requests, whatever the cache counts for each of them.
func TestStats_HitRatioIsThatOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const control = "Cache-Control: max-age=10, stale-while-revalidate=10"
		r := newTimedRig(t, background, counts(control, "Vary: X-Kind"))
		random := rand.New(rand.NewPCG(1, 2))
		keys := rand.NewZipf(random, 1.5, 1, 100)
		const requests = 2000
		missed := int64(0)
		for range requests {
			kind := fmt.Sprint("X-Kind: ", random.IntN(2))
			before := r.asked.Load()
			a := r.get(fmt.Sprint("/", keys.Uint64()), kind)
			require.Equal(t, http.StatusOK, a.code)
			if a.header.Get("Age") == "" && r.asked.Load() > before {
				missed++
			}
			synctest.Wait() // for an update in the background
			time.Sleep(20 * time.Millisecond)
		}
		s := r.m.Stats()
		require.EqualValues(t, requests, s.Requests)
		require.InDelta(t, float64(requests-missed)/requests, s.HitRatio(), 0.001)
		require.InDelta(t, 0.8, s.HitRatio(), 0.19, "the requests prove little")
	})
}

// Requests that pass could not have been hits, and those that wait for others were none.
func TestStats_WhatCounts(t *testing.T) {
	h, calls, open := gated(counts(fresh))
	r := newRig(t, Options{}, h)
	require.Zero(t, r.m.Stats().HitRatio())
	answers := r.sendMany(3, http.MethodGet, "/")
	wait(t, calls)
	open()
	for _, a := range answers() {
		require.NoError(t, a.err)
	}
	r.busy.Wait()
	require.LessOrEqual(t, r.m.Stats().Hits, uint64(2), "some may have come after the others")
	first := r.m.Stats()
	require.EqualValues(t, 3, first.Requests)
	require.Equal(t, http.StatusOK, r.do(http.MethodHead, "/").code)
	require.Equal(t, Stats{Requests: 4, Hits: first.Hits + 1}, r.m.Stats())
	r.do(http.MethodPost, "/")
	require.EqualValues(t, 4, r.m.Stats().Requests)
	require.Equal(t, 504, r.get("/none", "Cache-Control: only-if-cached").code)
	require.Equal(t, Stats{Requests: 5, Hits: first.Hits + 1}, r.m.Stats())
}
