//go:build go1.25

package near_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// The cache's clock has steps of 100 ms, the replies have not.
func TestUpdate_ExpiresToTheMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			s := newStore(newCache(t))
			const ttl = 150 * time.Millisecond
			s.Flight("k", "GET", ttl, time.Now())
			s.Update("k", "GET", text("v"))
			time.Sleep(ttl - time.Millisecond)
			requireHit(t, s, "k", "GET", "v")
			time.Sleep(time.Millisecond)
			requireMiss(t, s, "k", "GET", time.Now())
			time.Sleep(7 * time.Millisecond)
		}
	})
}

// A side record lives as long as it should, though the main one has a shorter time to live.
func TestUpdate_SideRecordOutlivesMainReply(t *testing.T) {
	for _, long := range []time.Duration{hour, 100 * 365 * 24 * hour} {
		synctest.Test(t, func(t *testing.T) { testOutlives(t, long) })
	}
}

func testOutlives(t *testing.T, long time.Duration) {
	s := newStore(newCache(t))
	now := time.Now()
	s.Flight("k", "GET", time.Second, now)
	s.Update("k", "GET", text("v"))
	s.Flight("k", "STRLEN", long, now)
	s.Update("k", "STRLEN", text("1"))
	s.Flight("k", "TYPE", time.Minute, now)
	s.Update("k", "TYPE", text("string"))
	time.Sleep(2 * time.Second)
	s.Flight("k", "GET", time.Second, time.Now()) // once more
	s.Update("k", "GET", text("v"))
	time.Sleep(30 * time.Minute)
	requireHit(t, s, "k", "STRLEN", "1")
	requireMiss(t, s, "k", "GET", time.Now())
	requireMiss(t, s, "k", "TYPE", time.Now())
}
