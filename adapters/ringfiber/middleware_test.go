package ringfiber_test

import (
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/csrf"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/gofiber/fiber/v3/middleware/session"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringfiber"
)

// sessions is an app that keeps names of users in fiber's sessions.
type sessions struct {
	*client
	cache *ringcache.Cache
	store *session.Store
}

func serveSessions(t *testing.T) *sessions {
	s := &sessions{cache: newCache(t)}
	app := fiber.New()
	var handler fiber.Handler
	handler, s.store = session.NewWithStore(session.Config{
		Storage:     ringfiber.New(s.cache, ringfiber.Options{Prefix: "session:"}),
		IdleTimeout: hour,
	})
	app.Use(handler)
	app.Get("/login/:name", func(c fiber.Ctx) error {
		sess := session.FromContext(c)
		if err := sess.Regenerate(); err != nil {
			return err
		}
		sess.Set("name", strings.Clone(c.Params("name")))
		return nil
	})
	app.Get("/me", func(c fiber.Ctx) error {
		name, _ := session.FromContext(c).Get("name").(string)
		return c.SendString(name)
	})
	app.Get("/logout", func(c fiber.Ctx) error { return session.FromContext(c).Destroy() })
	app.Get("/big", func(c fiber.Ctx) error {
		session.FromContext(c).Set("big", make([]byte, tooLarge))
		return nil
	})
	s.client = serve(t, app)
	return s
}

// other returns a client with its own cookies.
func (c *client) other() *client {
	jar, err := cookiejar.New(nil)
	require.NoError(c.t, err)
	http := *c.http
	http.Jar = jar
	return &client{c.t, c.url, &http}
}

func TestSession_LoginAndLogout(t *testing.T) {
	s := serveSessions(t)
	ann, bob := s.client, s.other()
	ann.get("/login/ann")
	bob.get("/login/bob")
	require.Equal(t, "ann", ann.get("/me").body)
	require.Equal(t, "bob", bob.get("/me").body)
	require.Empty(t, s.other().get("/me").body)

	ann.get("/logout")
	require.Empty(t, ann.get("/me").body)
	require.Equal(t, "bob", bob.get("/me").body)
}

func TestSession_IdleTimeoutIsTheTimeToLive(t *testing.T) {
	s := serveSessions(t)
	s.get("/login/ann")
	require.Positive(t, s.cache.Len())
	for k := range s.cache.Keys() {
		require.True(t, strings.HasPrefix(string(k), "session:"))
		left, ok := s.cache.TTL(k)
		require.True(t, ok)
		require.InDelta(t, hour, left, float64(time.Minute))
	}
}

// A session that the cache has dropped is a user who is logged out, and no error.
func TestSession_DroppedIsLoggedOut(t *testing.T) {
	s := serveSessions(t)
	s.get("/login/ann")
	s.cache.Reset()
	r := s.get("/me")
	require.Equal(t, http.StatusOK, r.status)
	require.Empty(t, r.body)
	s.get("/login/ann")
	require.Equal(t, "ann", s.get("/me").body)
}

func TestSession_ResetKeepsWhatIsNoSession(t *testing.T) {
	s := serveSessions(t)
	require.NoError(t, s.cache.Set([]byte("page:/"), []byte("welcome")))
	s.get("/login/ann")
	require.NoError(t, s.store.Reset(t.Context()))
	require.Empty(t, s.get("/me").body)
	require.True(t, s.cache.Has([]byte("page:/")))
}

// The error comes through to fiber, and an older state of the session is not kept.
func TestSession_TooLargeIsGone(t *testing.T) {
	s := serveSessions(t)
	s.get("/login/ann")
	require.Equal(t, http.StatusInternalServerError, s.get("/big").status)
	require.Empty(t, s.get("/me").body)
}

func TestLimiter_CountsUntilTheLimit(t *testing.T) {
	for name, strategy := range map[string]limiter.Handler{
		"fixed": limiter.FixedWindow{}, "sliding": limiter.SlidingWindow{},
	} {
		t.Run(name, func(t *testing.T) {
			cache := newCache(t)
			app := fiber.New()
			app.Use(limiter.New(limiter.Config{
				Max: 3, Expiration: hour, LimiterMiddleware: strategy,
				KeyGenerator: func(c fiber.Ctx) string { return c.Get("X-User") },
				Storage:      ringfiber.New(cache, ringfiber.Options{Prefix: "limit:"}),
			}))
			app.Get("/", func(c fiber.Ctx) error { return c.SendString("ok") })
			c := serve(t, app)
			for _, want := range []string{"2", "1", "0"} {
				r := c.get("/", "X-User", "ann")
				require.Equal(t, http.StatusOK, r.status)
				require.Equal(t, want, r.header.Get("X-RateLimit-Remaining"))
			}
			r := c.get("/", "X-User", "ann")
			require.Equal(t, http.StatusTooManyRequests, r.status)
			require.NotEmpty(t, r.header.Get("Retry-After"))
			require.Equal(t, http.StatusOK, c.get("/", "X-User", "bob").status)

			require.True(t, cache.Del([]byte("limit:ann")), "as an eviction does")
			require.Equal(t, http.StatusOK, c.get("/", "X-User", "ann").status)
		})
	}
}

func TestCSRF_TokenIsNeeded(t *testing.T) {
	app := fiber.New()
	app.Use(csrf.New(csrf.Config{
		Storage: ringfiber.New(newCache(t), ringfiber.Options{Prefix: "csrf:"}),
	}))
	app.All("/", func(c fiber.Ctx) error { return c.SendString(csrf.TokenFromContext(c)) })
	c := serve(t, app)
	token := c.get("/").body
	require.NotEmpty(t, token)
	post := func(token string) int {
		return c.must(http.MethodPost, "/", csrf.HeaderName, token, "Origin", c.url).status
	}
	require.Equal(t, http.StatusOK, post(token))
	require.Equal(t, http.StatusForbidden, post(token+"x"))
	require.Equal(t, http.StatusForbidden, post(""))
}

func TestIdempotency_HandlerRunsOnce(t *testing.T) {
	var runs int
	app := fiber.New()
	app.Use(idempotency.New(idempotency.Config{
		Storage: ringfiber.New(newCache(t), ringfiber.Options{Prefix: "once:"}),
	}))
	app.Post("/", func(c fiber.Ctx) error {
		runs++
		c.Set("X-Own", "kept")
		return c.Status(fiber.StatusCreated).SendString("made")
	})
	c := serve(t, app)
	const key = "00000000-0000-4000-8000-000000000001"
	for range 3 {
		r := c.must(http.MethodPost, "/", "X-Idempotency-Key", key)
		require.Equal(t, http.StatusCreated, r.status)
		require.Equal(t, "made", r.body)
		require.Equal(t, "kept", r.header.Get("X-Own"))
	}
	require.Equal(t, 1, runs)
	c.must(http.MethodPost, "/", "X-Idempotency-Key", strings.Replace(key, "1", "2", 1))
	require.Equal(t, 2, runs)
}
