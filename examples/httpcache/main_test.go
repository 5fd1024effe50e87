package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// row returns the first number of a row of the table.
func row(t *testing.T, table, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ *` + regexp.QuoteMeta(name) + ` +(\d+)`).FindStringSubmatch(table)
	if m == nil {
		t.Fatalf("no row %q in the output:\n%s", name, table)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRunPrintsTheTable(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-max", "32", "-clients", "3", "-requests", "200", "-pages", "40"}, &out); err != nil {
		t.Fatal(err)
	}
	table := out.String()
	requests, hits, misses := row(t, table, "requests"), row(t, table, "hits"), row(t, table, "misses")
	if requests != 600 || hits+misses != requests || hits < 200 {
		t.Errorf("%d requests, %d hits, %d misses", requests, hits, misses)
	}
	if n := row(t, table, "requests to the server"); n != misses {
		t.Errorf("%d requests to the server with %d misses", n, misses)
	}
	if n := row(t, table, "of these stored") + row(t, table, "not to be stored"); n != misses {
		t.Errorf("%d responses stored or not, with %d misses", n, misses)
	}
	if n := row(t, table, "answered with 304"); n < 100 {
		t.Errorf("%d answers of 304", n)
	}
	if n := row(t, table, "page 0 is good for"); n < 1 || n > 60 {
		t.Errorf("page 0 is good for %d s", n)
	}
	if n := row(t, table, "wrong"); n != 0 {
		t.Errorf("%d wrong answers", n)
	}
	if t.Failed() {
		t.Log(table)
	}
}

// One client that speaks one language asks once for each page that may be kept,
// and each time for the others.
func TestOneClient(t *testing.T) {
	w, err := newWorld(config{maxBytes: 32 * mb, pages: 4 * kinds, clients: 1, requests: 300, maxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for range 3 {
		for n := range w.cfg.pages {
			if _, err := w.get(n, "en", ""); err != nil {
				t.Fatal(err)
			}
			w.serving.Wait()
		}
	}
	c := &w.front.count
	if got, want := w.origin.requests.Load(), int64(4*(6+3*2)); got != want {
		t.Errorf("%d requests to the server, want %d", got, want)
	}
	if got, want := c.hits.Load(), int64(4*6*2); got != want {
		t.Errorf("%d hits, want %d", got, want)
	}
	if got, want := c.fetched.Load()+c.hitBytes.Load(), w.received.Load(); got != want {
		t.Errorf("%d bytes came from the server or the cache, the client has %d", got, want)
	}
	if n := w.wrong.Load(); n != 0 {
		t.Errorf("%d wrong answers", n)
	}
}

func TestWrongAnswersAreFound(t *testing.T) {
	w, err := newWorld(config{maxBytes: 32 * mb, pages: kinds, clients: 1, requests: 1, maxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if _, err := w.get(0, "en", ""); err != nil {
		t.Fatal(err)
	}
	w.serving.Wait()
	w.origin.pages[0].body["en"] = []byte("another page")
	if _, err := w.get(0, "en", ""); err != nil {
		t.Fatal(err)
	}
	if n := w.wrong.Load(); n != 1 {
		t.Errorf("%d wrong answers, want 1: the cache has the old page", n)
	}
	const tag = `"0"`
	for _, c := range []struct {
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
		if got := w.right(0, "en", c.asked, c.code, c.etag, []byte(c.body)); got != c.right {
			t.Errorf("right(%+v) = %v", c, got)
		}
	}
}

func TestRunRefuses(t *testing.T) {
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
			if err := run(args, &out); err == nil {
				t.Errorf("run(%q) succeeded:\n%s", args, out.String())
			}
		})
	}
}
