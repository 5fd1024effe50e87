package ringscs_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringscs"
)

var (
	_ scs.Store            = (*ringscs.Store)(nil)
	_ scs.IterableStore    = (*ringscs.Store)(nil)
	_ scs.IterableCtxStore = (*ringscs.Store)(nil)
)

const (
	cacheSize = 32 << 20
	tooLarge  = cacheSize/16 + 1 // for a value
	hour      = time.Hour
	patience  = 10 * time.Second // what takes longer fails
)

// newCache returns the smallest cache, which is closed at the end of the test.
func newCache(t testing.TB) *ringcache.Cache {
	cache := ringcache.New(cacheSize)
	t.Cleanup(func() { cache.Close() })
	return cache
}

// site is a server whose sessions are in a cache that has other entries too.
type site struct {
	t      testing.TB
	url    string
	cache  *ringcache.Cache
	store  *ringscs.Store
	mgr    *scs.SessionManager
	failed chan error // of scs' ErrorFunc
}

func serve(t testing.TB) *site {
	s := &site{t: t, cache: newCache(t), mgr: scs.New(), failed: make(chan error, 10)}
	require.NoError(t, s.cache.Set([]byte("other"), []byte("not a session")))
	s.store = ringscs.New(s.cache, ringscs.Options{Prefix: "session:"})
	s.mgr.Store = s.store
	s.mgr.ErrorFunc = func(w http.ResponseWriter, _ *http.Request, err error) {
		s.failed <- err
		w.WriteHeader(http.StatusInternalServerError)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/login/{name}", func(_ http.ResponseWriter, r *http.Request) {
		if err := s.mgr.RenewToken(r.Context()); err != nil {
			panic(err)
		}
		s.mgr.Put(r.Context(), "name", r.PathValue("name"))
	})
	mux.HandleFunc("/me", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, s.mgr.GetString(r.Context(), "name"))
	})
	mux.HandleFunc("/logout", func(_ http.ResponseWriter, r *http.Request) {
		if err := s.mgr.Destroy(r.Context()); err != nil {
			panic(err)
		}
	})
	mux.HandleFunc("/big", func(_ http.ResponseWriter, r *http.Request) {
		s.mgr.Put(r.Context(), "big", make([]byte, tooLarge))
	})
	server := httptest.NewServer(s.mgr.LoadAndSave(mux))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// user is a client with its own cookies.
type user struct {
	*site
	http *http.Client
}

func (s *site) user() *user {
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	return &user{s, &http.Client{Jar: jar, Timeout: patience}}
}

func (u *user) get(path string) (status int, body string) {
	u.t.Helper()
	resp, err := u.http.Get(u.url + path)
	require.NoError(u.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(u.t, err)
	return resp.StatusCode, string(b)
}

func (u *user) login(name string) {
	u.t.Helper()
	status, _ := u.get("/login/" + name)
	require.Equal(u.t, http.StatusOK, status)
}

// requireName requires that the user is logged in by that name; "": not at all.
func (u *user) requireName(want string) {
	u.t.Helper()
	status, body := u.get("/me")
	require.Equal(u.t, http.StatusOK, status)
	require.Equal(u.t, want, body)
}

// token returns that of the user's session.
func (u *user) token() string {
	u.t.Helper()
	req, err := http.NewRequest(http.MethodGet, u.url, nil)
	require.NoError(u.t, err)
	cookies := u.http.Jar.Cookies(req.URL)
	require.Len(u.t, cookies, 1)
	return cookies[0].Value
}
