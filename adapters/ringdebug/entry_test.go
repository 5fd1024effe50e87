package ringdebug

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestParseName(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "": "", `""`: "", "'": "'", "ü": "ü", `a"b`: `a"b`, `\x00`: `\x00`,
		`"\x00\xff\n\"<>"`: "\x00\xff\n\"<>", "`raw`": "raw",
	} {
		got, err := parseName(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{`"`, `"a`, `"a"b`, "`"} {
		_, err := parseName(text)
		require.ErrorContains(t, err, text+" is not a Go string")
	}
}

func TestKey_Found(t *testing.T) {
	c := newCache(t, ringcache.Options{})
	require.NoError(t, c.SetWithTTL([]byte("k"), []byte("value"), time.Hour))
	set(t, c, "\xff\x00", "for ever")
	set(t, c.Namespace("n"), "k", "in n")
	set(t, c.Namespace(""), "k", "in the one without a name")
	set(t, c.Namespace(`"`), "k", "")
	s, _ := pageOf(t, c, nil, Options{})
	look := func(status int, query ...string) *entry {
		p := s.json(status, append([]string{"cache", "pages"}, query...)...)
		require.Empty(t, p.Caches)
		return p.Entry
	}

	e := look(http.StatusOK, "key", "k")
	require.InDelta(t, time.Hour, e.TTL, float64(time.Minute))
	e.TTL = 0
	require.Equal(t, &entry{Key: `"k"`, Found: true, KeyBytes: 1, ValueBytes: 5}, e)
	for _, key := range []string{"\xff\x00", `"\xff\x00"`} {
		e = look(http.StatusOK, "key", key)
		require.Equal(t, &entry{Key: `"\xff\x00"`, Found: true, KeyBytes: 2, ValueBytes: 8}, e)
		require.Contains(t, s.html("cache", "pages", "key", key), "never expires")
	}

	for namespace, value := range map[string]string{
		"n": "in n", `"n"`: "in n", `""`: "in the one without a name", `"\""`: "",
	} {
		e = look(http.StatusOK, "key", "k", "namespace", namespace)
		require.True(t, e.Found)
		require.Equal(t, len(value), e.ValueBytes, namespace)
		if namespace[0] == '"' {
			require.Equal(t, namespace, *e.Namespace)
		}
	}
	e = look(http.StatusNotFound, "key", "\xff\x00", "namespace", "n")
	require.Equal(t, `"n"`, *e.Namespace)
	require.False(t, e.Found)
	a := s.do(http.MethodGet, "cache", "pages", "key", "none")
	require.Equal(t, http.StatusNotFound, a.StatusCode)
	require.Contains(t, a.body, "Not in the cache")
}

func TestValues_AreHiddenByDefault(t *testing.T) {
	c := newCache(t, ringcache.Options{})
	set(t, c, "k", "a secret")
	set(t, c, "long", strings.Repeat("x", shownValue+1))
	set(t, c, "binary", "\x00secret\xff")
	query := []string{"cache", "pages", "key", "k"}
	s, _ := pageOf(t, c, nil, Options{})
	for _, format := range []string{"html", "json"} {
		body := s.do(http.MethodGet, append(query, "format", format)...).body
		require.NotContains(t, body, "secret")
		require.NotContains(t, body, "Value\"")
	}
	require.Nil(t, s.json(http.StatusOK, query...).Entry.Value)

	s, _ = pageOf(t, c, nil, Options{ShowValues: true})
	require.Contains(t, s.html(query...), "<pre>a secret</pre>")
	e := s.json(http.StatusOK, query...).Entry
	require.Equal(t, "a secret", string(e.Value))
	require.False(t, e.ValueCut)
	e = s.json(http.StatusOK, "cache", "pages", "key", "long").Entry
	require.Equal(t, shownValue+1, e.ValueBytes)
	require.Len(t, e.Value, shownValue)
	require.True(t, e.ValueCut)
	require.Contains(t, s.html("cache", "pages", "key", "long"), "the first 4,096 bytes")
	require.Contains(t, s.html("cache", "pages", "key", "binary"),
		"00 73 65 63 72 65 74 ff")
	require.NotContains(t, s.html("cache", "pages"), "secret", "nowhere else")
}

// Keys, values and names are whatever somebody has sent to the program.
func TestHostileBytes_AreEscaped(t *testing.T) {
	const hostile = "<script>alert(1)</script>\"'`&\x00\x1b[31m\r\n\u202e\xff"
	text, _, _ := strings.Cut(hostile, "\x00")
	var reads Reads
	c := newCache(t, ringcache.Options{})
	set(t, c, hostile, "<script>alert(2)</script>")
	set(t, c.Namespace(hostile), hostile, hostile)
	h := New(Options{ShowValues: true})
	require.NoError(t, h.Add(text, c, &reads))
	s := serve(t, h)
	h.during(func() {
		reads.Observe([]byte(hostile))
		reads.ObserveIn(hostile, []byte(hostile))
	})
	quoted := `"<script>alert(1)</script>\"'` + "`" + `&\x00\x1b[31m\r\n\u202e\xff"`
	all := []string{s.html(), s.html("cache", text), s.html("cache", text, "seconds", "1"),
		s.html("cache", text, "key", hostile),
		s.html("cache", text, "key", quoted),
		s.html("cache", text, "key", hostile, "namespace", quoted)}
	for _, html := range all {
		require.NotContains(t, html, "<script")
		require.NotContains(t, html, "\x1b")
	}
	shown := "&lt;script&gt;alert(1)&lt;/script&gt;\\&#34;&#39;`&amp;\\x00\\x1b[31m\\r\\n\\u202e\\xff"
	require.Equal(t, 2, strings.Count(all[2], "<code>&#34;"+shown+"&#34;</code></a>"), "hot keys")
	p := s.json(http.StatusOK, "cache", text, "seconds", "1")
	require.Equal(t, quoted, p.Caches[0].Watched.HotKeys.Keys[0].Key)
	require.Equal(t, quoted, p.Caches[0].Namespaces[0].Name)
	require.True(t, p.Caches[0].Watched.HotKeys.Keys[1].Found, "in its namespace")
	for _, a := range []answered{s.do(http.MethodGet, "cache", hostile+"none"),
		s.do(http.MethodGet, "<script>", "1"), s.do(http.MethodGet, "format", "<script>")} {
		require.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
	}
}

func TestDump(t *testing.T) {
	cutRune := strings.Repeat("x", shownValue-2) + "ü"[:1]
	for in, want := range map[string]string{
		"": "", "text\n\tü": "text\n\tü", "\u202e": "00000000  e2 80 ae ",
		"\xff": "00000000  ff ", "a\x00": "00000000  61 00 ", "\r": "00000000  0d ",
		cutRune + "x": "00000000  78 78 ",
	} {
		require.True(t, strings.HasPrefix(dump([]byte(in)), want), "%q", in)
	}
	require.Equal(t, cutRune[:shownValue-2]+"x", dump([]byte(cutRune[:shownValue-2]+"x"+"ü"[:1])))
}
