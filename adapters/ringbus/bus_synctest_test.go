//go:build go1.25

package ringbus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringbus"
)

// bubble runs a test with two instances and a fake clock.
func bubble(t *testing.T, test func(t *testing.T, h *hub, a, b *instance)) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		a, b := h.start(t, ringbus.Options{}), h.start(t, ringbus.Options{})
		test(t, h, a, b)
	})
}

// Calls that come while a message is published share the next one.
func TestDel_ConcurrentCallsShareMessages(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, a, b *instance) {
		h.hold = make(chan struct{})
		for i := range 101 {
			key := fmt.Sprint(i)
			b.set(b.cache, key)
			go func() {
				if err := a.bus.Del(ctx, []byte(key)); err != nil {
					t.Error(err)
				}
			}()
			if i == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		close(h.hold)
		synctest.Wait()
		b.requireHas(b.cache)
		require.Len(t, h.sizes, 2)
		require.Equal(t, uint64(2), a.bus.Stats().Published)
	})
}

// In an outage no value is older than MaxStale, and after it there is none that was loaded in it.
func TestRun_Outage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []error
		h := newHub()
		a := h.start(t, ringbus.Options{
			MaxStale: 3 * time.Second,
			OnLost:   func(err error) { lost = append(lost, err) },
		})
		a.set(a.cache, "before")
		time.Sleep(time.Hour)
		a.requireHas(a.cache, "before")

		h.set(func() { h.down = true })
		h.kill()
		synctest.Wait()
		a.requireHas(a.cache)
		require.False(t, a.bus.Stats().Subscribed)
		for range 100 {
			a.set(a.cache, "during")
			a.set(a.cache.Namespace("n"), "during")
			time.Sleep(3 * time.Second)
			synctest.Wait()
			a.requireHas(a.cache)
			a.requireHas(a.cache.Namespace("n"))
		}
		require.Len(t, lost, 101, "one attempt every 3 s")
		require.ErrorIs(t, lost[0], errDown)

		time.Sleep(time.Second) // between two attempts
		a.set(a.cache, "during")
		h.set(func() { h.down, h.slow = false, 100*time.Millisecond })
		time.Sleep(2050 * time.Millisecond)
		a.requireHas(a.cache)
		a.set(a.cache, "during")
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		a.requireHas(a.cache)
		require.True(t, a.bus.Stats().Subscribed)
		a.set(a.cache, "after")
		time.Sleep(time.Hour)
		a.requireHas(a.cache, "after")
		a.stop()
		require.Len(t, lost, 102)
		require.ErrorIs(t, lost[101], context.Canceled)
	})
}

// The same holds while an attempt to subscribe takes long.
func TestRun_SlowToSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		h.slow = 101 * time.Second
		a := h.startAlone(t, ringbus.Options{})
		for range 100 {
			a.set(a.cache, "k")
			time.Sleep(time.Second)
			synctest.Wait()
			a.requireHas(a.cache)
		}
		require.False(t, a.bus.Stats().Subscribed)
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, a.bus.Stats().Subscribed)
	})
}

// A load that began before there was a subscription may have missed a message: its result is not
// stored.
func TestRun_LoadsOfBeforeAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		h.down = true
		a := h.startAlone(t, ringbus.Options{})
		done := make(chan struct{})
		go func() {
			_, err := a.cache.GetOrLoad(ctx, nil, []byte("k"),
				func(context.Context, []byte) ([]byte, time.Duration, error) {
					<-done
					return []byte("old"), 0, nil
				})
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		h.set(func() { h.down = false })
		for !a.bus.Stats().Subscribed {
			time.Sleep(time.Second)
		}
		close(done)
		synctest.Wait()
		a.requireHas(a.cache)
	})
}

// Run ends at once in the pause before the next attempt, however long it is, and empties the cache.
func TestRun_EndsInThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		h.down = true
		a := h.startAlone(t, ringbus.Options{MaxStale: time.Hour})
		time.Sleep(time.Minute)
		now, emptied := time.Now(), a.bus.Stats().Emptied
		a.stop()
		require.Equal(t, now, time.Now())
		require.Equal(t, emptied+1, a.bus.Stats().Emptied)
	})
}

// What could not be published is made good by the next message, or by Run: the others remove
// everything.
func TestDel_FailedMessageIsMadeGood(t *testing.T) {
	for name, next := range map[string]func(a *instance){
		"by Run": func(*instance) { time.Sleep(2 * time.Second) },
		"by Del": func(a *instance) { require.NoError(a.t, a.bus.Del(ctx, []byte("k4"))) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hub, a, b *instance) {
				for _, i := range []*instance{a, b} {
					i.set(i.cache, "k1", "k2", "k3")
					i.set(i.cache.Namespace("n"), "k1", "k2")
				}
				h.set(func() { h.mute = true })
				err := a.bus.Namespace("n").Del(ctx, []byte("k1"))
				require.ErrorIs(t, err, errDown)
				require.EqualError(t, err, "ringbus: publish message: the bus is down")
				require.ErrorIs(t, a.bus.Del(ctx, []byte("k1")), errDown)
				time.Sleep(time.Hour)
				a.requireHas(a.cache, "k2", "k3")
				a.requireHas(a.cache.Namespace("n"), "k2")
				b.requireHas(b.cache, "k1", "k2", "k3")
				require.Greater(t, a.bus.Stats().Failed, uint64(3600), "Run tries every second")

				h.set(func() { h.mute = false })
				next(a)
				synctest.Wait()
				b.requireHas(b.cache)
				b.requireHas(b.cache.Namespace("n"))
				require.True(t, a.cache.Has([]byte("k2")), "it has removed all that it had to")
				b.set(b.cache, "k1")
				time.Sleep(time.Hour)
				b.requireHas(b.cache, "k1")
			})
		})
	}
}

// While the bus hangs, at most two messages are in memory. Calls end with their contexts, and the
// others hear of all their keys nevertheless.
func TestDel_BusHangs(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, a, b *instance) {
		h.hold = make(chan struct{})
		const calls = 10_000
		late := 0
		for i := range calls {
			key := fmt.Appendf(nil, "%0100d", i)
			a.set(a.cache, string(key))
			b.set(b.cache, string(key))
			go func() {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if err := a.bus.Del(ctx, key); errors.Is(err, context.DeadlineExceeded) {
					h.set(func() { late++ })
				}
			}()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, calls, late)
		a.requireHas(a.cache)
		require.Equal(t, calls, b.cache.Len())
		h.set(func() { close(h.hold); h.hold = nil })
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		b.requireHas(b.cache)
		require.LessOrEqual(t, len(h.sizes), 3)
	})
}

// A call of Publish ends after 5 s, also where the caller would wait for ever.
func TestDel_PublishTimesOut(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, a, b *instance) {
		h.hold = make(chan struct{})
		from := time.Now()
		require.ErrorIs(t, a.bus.Del(ctx, []byte("k")), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(from))
		close(h.hold)
	})
}

// A Del whose context has ended publishes nevertheless.
func TestDel_EndedContext(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, a, b *instance) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		a.set(a.cache, "k", "k2")
		b.set(b.cache, "k", "k2")
		_ = a.bus.Del(ended, []byte("k")) // nil if the message was faster
		synctest.Wait()
		a.requireHas(a.cache, "k2")
		b.requireHas(b.cache, "k2")
	})
}
