package ringstatsviz

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/arl/statsviz"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestMount_Errors(t *testing.T) {
	pages := newCache(t)
	for name, c := range map[string]struct {
		caches  map[string]*ringcache.Cache
		options []statsviz.Option
		want    error
	}{
		"no name":   {caches: map[string]*ringcache.Cache{"": pages}, want: ErrInvalidName},
		"not UTF-8": {caches: map[string]*ringcache.Cache{"\xff": pages}, want: ErrInvalidName},
		"options":   {options: []statsviz.Option{statsviz.SendFrequency(0)}},
	} {
		mux := http.NewServeMux()
		page, err := Mount(mux, c.caches, c.options...)
		require.ErrorContains(t, err, "ringstatsviz: plot cache", name)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
		}
		require.Nil(t, page, name)
		_, pattern := mux.Handler(httptest.NewRequest("GET", Path, nil))
		require.Empty(t, pattern, "%s: something is mounted", name)
	}
}

func TestMount_NilCachePanics(t *testing.T) {
	mux := http.NewServeMux()
	caches := map[string]*ringcache.Cache{"pages": newCache(t), "users": nil}
	require.PanicsWithValue(t, "ringstatsviz: plot caches: cache is nil",
		func() { _, _ = Mount(mux, caches) })
	_, pattern := mux.Handler(httptest.NewRequest("GET", Path, nil))
	require.Empty(t, pattern, "nothing is mounted")
}

func TestMount_Serves(t *testing.T) {
	mux := http.NewServeMux()
	page, err := Mount(mux, map[string]*ringcache.Cache{"pages": newCache(t)},
		statsviz.Root("/elsewhere"))
	require.NoError(t, err)
	defer func() { require.NoError(t, page.Close()) }()
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, want := range map[string]string{
		Path:                  "text/html; charset=utf-8",
		Path + "ringcache.js": "text/javascript; charset=utf-8",
		Path + "favicon.ico":  "image/x-icon",
	} {
		r, err := http.Get(server.URL + path)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusOK, r.StatusCode, path)
		require.NotEmpty(t, body, path)
		if path != Path+"favicon.ico" { // of which systems have different ideas
			require.Equal(t, want, r.Header.Get("Content-Type"))
		}
		if path == Path {
			require.Contains(t, string(body), `<head><script src="ringcache.js"></script>`)
			require.Contains(t, string(body), "</html>")
		}
	}
}
