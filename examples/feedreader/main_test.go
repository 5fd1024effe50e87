package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed"
)

func newTestWorld(t *testing.T, cfg config) *world {
	t.Helper()
	w, err := newWorld(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// Two feeds of each kind, one of them Atom: what each round has to be.
func TestRounds(t *testing.T) {
	const articles = 7
	w := newTestWorld(t,
		config{maxBytes: 32 * mb, feeds: 2 * kinds, articles: articles, rounds: 3, workers: 3})
	if err := w.pollAll(); err != nil {
		t.Fatal(err)
	}
	later := tally{
		skipped:     2,                           // patient
		notModified: 2,                           // quiet
		fetched:     6,                           // busy, edited, careless
		added:       2,                           // busy
		changed:     2,                           // edited
		unchanged:   4*(articles-1) + 2*articles, // the rest
	}
	for i, got := range w.rounds {
		want := later
		if i == 0 {
			want = tally{fetched: 2 * kinds, added: 2 * kinds * articles}
		}
		if want.bytes = got.bytes; got.bytes == 0 || got != want {
			t.Errorf("round %d: %+v, want %+v", i+1, got, want)
		}
	}
	all := w.forgets.sum
	want := tally{fetched: 3 * 2 * kinds, added: 3 * 2 * kinds * articles, bytes: all.bytes}
	if all != want {
		t.Errorf("the reader that forgets: %+v, want %+v", all, want)
	}
	if a, b := &w.remembers, &w.forgets; a.sum.bytes >= all.bytes ||
		a.words.Load() >= b.words.Load() || a.text.Load() >= b.text.Load() {
		t.Error("remembering has spared nothing")
	}
	// Requests: 10, and 8 in each later round; 10 in each.
	if got := w.server.requests.Load(); got != 10+2*8+3*10 {
		t.Errorf("the server got %d requests", got)
	}
}

// Articles are what was written, in either format.
func TestFormats(t *testing.T) {
	w := newTestWorld(t, config{maxBytes: 32 * mb, feeds: 2, articles: 3, rounds: 1, workers: 1})
	for i, format := range []string{"rss", "atom"} {
		var got []*gofeed.Item
		w.remembers.reader.deliver = func(item *gofeed.Item) { got = append(got, item) }
		if _, err := w.remembers.reader.poll(w.urls[i]); err != nil {
			t.Fatal(err)
		}
		for j, want := range w.server.feeds[i].articles {
			item := got[j]
			// White space at the ends is lost on the way.
			if text := item.Description + item.Content; item.Title != want.Title ||
				text != strings.TrimSpace(want.HTML) || item.GUID != fmt.Sprint(want.ID) {
				t.Errorf("%s: article %d is %+v, want %+v", format, j, item, want)
			}
		}
		text := w.server.feeds[i].text
		feed, err := gofeed.NewParser().Parse(bytes.NewReader(text))
		if err != nil || feed.FeedType != format {
			t.Errorf("feed %d is %q, %v; want %s", i, feed.FeedType, err, format)
		}
		// gofeed forgives much; here it need not.
		if err := xml.Unmarshal(text, new(struct{})); err != nil {
			t.Errorf("feed %d: %v", i, err)
		}
	}
}

func TestWork(t *testing.T) {
	var sub subscriber
	sub.work(&gofeed.Item{Title: "T", Description: "one <b>two</b> three<p>four five</p>"})
	sub.work(&gofeed.Item{Content: "<p>six</p>"})
	if words := sub.words.Load(); words != 6 {
		t.Errorf("%d words, want 6", words)
	}
}

func TestRunPrintsTheTable(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-feeds", "5", "-articles", "4", "-rounds", "2", "-workers", "2"},
		&out); err != nil {
		t.Fatal(err)
	}
	table := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"1 0 0 5 20 0 0 0.",         // all is new
		"2 1 1 3 1 1 10 0.",         // a feed of each kind
		"feeds fetched 8 10 ",       //
		"articles parsed 32 40 ",    //
		"articles worked on 22 40 ", //
		"entries in the cache 25 ",  // 21 articles, 3 validators, 1 wait
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in the output:\n%s", want, out.String())
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":     {"a"},
		"a small cache":   {"-max", "0"},
		"no feeds":        {"-feeds", "0"},
		"no articles":     {"-articles", "0"},
		"no rounds":       {"-rounds", "0"},
		"no workers":      {"-workers", "0"},
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
