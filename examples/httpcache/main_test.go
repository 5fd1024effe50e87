package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// row returns the first number of a row of the table.
func row(t *testing.T, table, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ *` + regexp.QuoteMeta(name) + ` +(\d+)`).FindStringSubmatch(table)
	require.NotNil(t, m, "no row %q in the output:\n%s", name, table)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

func TestRun_PrintsTheTable(t *testing.T) {
	var out strings.Builder
	args := []string{"-max", "32", "-clients", "3", "-requests", "200", "-pages", "40"}
	require.NoError(t, run(args, &out))
	table := out.String()
	hits, joined := row(t, table, "from the cache"), row(t, table, "with another's request")
	handled := row(t, table, "by the handler")
	require.Equal(t, 600, row(t, table, "requests"))
	require.Equal(t, 600, hits+joined+handled)
	require.Greater(t, hits, 200)
	require.LessOrEqual(t, row(t, table, "of these stored"), 50, "one for each page and language")
	require.Greater(t, row(t, table, "answered with 304"), 100)
	require.Zero(t, row(t, table, "wrong"))
}

func newClients(t *testing.T, pages int) *clients {
	cache := ringcache.New(32 * mb)
	t.Cleanup(func() { require.NoError(t, cache.Close()) })
	o := newOrigin(pages, time.Hour)
	server, err := serve(cache, o)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return &clients{origin: o, url: server.URL, http: server.Client()}
}

// One client that speaks one language makes the handler work once for each page that may be
// kept, and each time for the others.
func TestClients_One(t *testing.T) {
	c := newClients(t, 4*kinds)
	for range 3 {
		for n := range c.origin.pages {
			_, err := c.get(n, "en", "")
			require.NoError(t, err)
		}
	}
	require.EqualValues(t, 4*(6+3*2), c.origin.requests.Load())
	require.EqualValues(t, 4*6*2, c.hits.Load())
	require.EqualValues(t, 4*6, c.stored.Load())
	require.EqualValues(t, 4*(6+3*2), c.handled.Load())
	require.Zero(t, c.wrong.Load())
}

func TestClients_WrongAnswersAreFound(t *testing.T) {
	c := newClients(t, kinds)
	_, err := c.get(0, "en", "")
	require.NoError(t, err)
	c.origin.pages[0].body["en"] = []byte("another page")
	_, err = c.get(0, "en", "")
	require.NoError(t, err)
	require.EqualValues(t, 1, c.wrong.Load(), "the cache has the old page")
	const tag = `"0"`
	for _, a := range []struct {
		asked string
		code  int
		etag  string
		body  string
		right bool
	}{
		{"", 200, tag, "another page", true},
		{tag, 200, tag, "another page", true},
		{tag, 304, tag, "", true},
		{"", 200, tag, "another pag", false},
		{"", 200, `"1"`, "another page", false},
		{"", 404, tag, "another page", false},
		{"", 304, tag, "", false},
		{`"1"`, 304, tag, "", false},
	} {
		require.Equal(t, a.right, c.right(0, "en", a.asked, a.code, a.etag, []byte(a.body)), "%+v", a)
	}
}

func TestRun_Refuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":     {"a"},
		"a small cache":   {"-max", "31"},
		"few pages":       {"-pages", fmt.Sprint(kinds - 1)},
		"no clients":      {"-clients", "0"},
		"no requests":     {"-requests", "0"},
		"half a second":   {"-max-age", "500ms"},
		"odd seconds":     {"-max-age", "1500ms"},
		"an unknown flag": {"-no-such-flag"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.Error(t, run(args, &out), out.String())
		})
	}
}
