package ringscs_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestLoadAndSave_LoginAndLogout(t *testing.T) {
	s := serve(t)
	ann, bob := s.user(), s.user()
	ann.login("ann")
	bob.login("bob")
	ann.requireName("ann")
	bob.requireName("bob")
	s.user().requireName("")

	status, _ := ann.get("/logout")
	require.Equal(t, http.StatusOK, status)
	ann.requireName("")
	bob.requireName("bob")
}

// A new login takes another token, and the old one is of no use any more.
func TestLoadAndSave_OldTokenIsGone(t *testing.T) {
	s := serve(t)
	u := s.user()
	u.login("ann")
	old := u.token()
	u.login("bob")
	require.NotEqual(t, old, u.token())
	_, found, err := s.store.Find(old)
	require.NoError(t, err)
	require.False(t, found)
	u.requireName("bob")
}

func TestLoadAndSave_TokensThatNobodyGave(t *testing.T) {
	s := serve(t)
	s.user().login("ann")
	for _, token := range []string{"x", "other", "session:", "../other"} {
		u := s.user()
		req, err := http.NewRequest(http.MethodGet, s.url, nil)
		require.NoError(t, err)
		u.http.Jar.SetCookies(req.URL, []*http.Cookie{{Name: "session", Value: token}})
		u.requireName("")
	}
}

func TestLoadAndSave_TimeToLive(t *testing.T) {
	s := serve(t)
	s.mgr.Lifetime = 10 * hour
	s.mgr.IdleTimeout = hour
	u := s.user()
	u.login("ann")
	left, ok := s.cache.TTL([]byte("session:" + u.token()))
	require.True(t, ok)
	require.InDelta(t, hour, left, float64(time.Minute))

	s.mgr.IdleTimeout = 2 * hour
	u.requireName("ann") // scs saves the session again
	left, ok = s.cache.TTL([]byte("session:" + u.token()))
	require.True(t, ok)
	require.InDelta(t, 2*hour, left, float64(time.Minute))
}

// A session that the cache has dropped is a user who is logged out, and no error.
func TestLoadAndSave_DroppedIsLoggedOut(t *testing.T) {
	s := serve(t)
	u := s.user()
	u.login("ann")
	for i := range 4 * cacheSize / 1_000 {
		k := []byte(fmt.Sprint(i))
		require.NoError(t, s.cache.Set(k, make([]byte, 1_000)))
		require.True(t, s.cache.Has(k)) // else the session, which was read, would be kept
	}
	u.requireName("")
	u.login("ann")
	u.requireName("ann")
}

func TestLoadAndSave_TooLargeIsAnErrorAndGone(t *testing.T) {
	s := serve(t)
	u := s.user()
	u.login("ann")
	status, _ := u.get("/big")
	require.Equal(t, http.StatusInternalServerError, status)
	require.ErrorIs(t, <-s.failed, ringcache.ErrTooLarge)
	u.requireName("")
}

func TestLoadAndSave_HashedTokens(t *testing.T) {
	s := serve(t)
	s.mgr.HashTokenInStore = true
	u := s.user()
	u.login("ann")
	u.requireName("ann")
	require.False(t, s.cache.Has([]byte("session:"+u.token())))
}

func TestIterate_SeesAllSessionsAndNothingElse(t *testing.T) {
	s := serve(t)
	want := map[string]bool{}
	for i := range 100 {
		name := fmt.Sprint("user", i)
		s.user().login(name)
		want[name] = true
	}
	gone := s.user()
	gone.login("gone")
	_, _ = gone.get("/logout")

	got := map[string]bool{}
	require.NoError(t, s.mgr.Iterate(t.Context(), func(ctx context.Context) error {
		got[s.mgr.GetString(ctx, "name")] = true
		return nil
	}))
	require.Equal(t, want, got)
}

// Iterate is how scs logs a user out everywhere.
func TestIterate_DestroysSessions(t *testing.T) {
	s := serve(t)
	phone, laptop, other := s.user(), s.user(), s.user()
	phone.login("ann")
	laptop.login("ann")
	other.login("bob")
	require.NoError(t, s.mgr.Iterate(t.Context(), func(ctx context.Context) error {
		if s.mgr.GetString(ctx, "name") == "ann" {
			return s.mgr.Destroy(ctx)
		}
		return nil
	}))
	phone.requireName("")
	laptop.requireName("")
	other.requireName("bob")
}

func TestIterate_EndsWithItsContext(t *testing.T) {
	s := serve(t)
	s.user().login("ann")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.mgr.Iterate(ctx, func(context.Context) error { panic("called") })
	require.ErrorIs(t, err, context.Canceled)
}
