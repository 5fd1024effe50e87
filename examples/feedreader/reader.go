package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/ringcache/ringcache"
)

const (
	// maxFeed is the maximum size of a feed in bytes.
	maxFeed = 8 * mb

	// trust is how long a feed's validators are used. After that, the feed is fetched
	// in full once, in case its server wrongly returns 304.
	trust = 24 * time.Hour

	// longestWait is the longest time that a feed may ask to wait.
	longestWait = 6 * time.Hour
)

// reader polls feeds and delivers the articles that are new or have changed.
//
// All its state is in the cache, which may drop any of it. The reader then
// behaves as on its first visit: a feed is fetched once too often, or an article
// is delivered twice. None is missed because of that.
type reader struct {
	cache   *ringcache.Cache
	client  *http.Client
	deliver func(*gofeed.Item) // is called by several goroutines
}

// tally counts the results of some polls.
type tally struct {
	skipped     int   // feeds whose wait is not over
	notModified int   // feeds whose server answered 304
	fetched     int   // feeds that were read
	bytes       int64 // of those
	added       int   // articles that were not known
	changed     int   // articles that were known with different content
	unchanged   int   // articles that were known
}

func (t *tally) add(u tally) {
	t.skipped += u.skipped
	t.notModified += u.notModified
	t.fetched += u.fetched
	t.bytes += u.bytes
	t.added += u.added
	t.changed += u.changed
	t.unchanged += u.unchanged
}

// articles returns how many articles were read.
func (t tally) articles() int { return t.added + t.changed + t.unchanged }

// round polls each of the feeds once, several at a time. A failing feed does not
// affect the others.
func (r *reader) round(urls []string, workers int) (tally, error) {
	var mu sync.Mutex // guards sum and errs
	var sum tally
	var errs []error
	next := make(chan string)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for url := range next {
				t, err := r.poll(url)
				mu.Lock()
				sum.add(t)
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	for _, url := range urls {
		next <- url
	}
	close(next)
	wg.Wait()
	return sum, errors.Join(errs...)
}

// poll reads a feed if there is anything to read. A feed must not be polled
// twice at the same time.
func (r *reader) poll(url string) (tally, error) {
	if _, early := r.cache.TTL(key('w', url)); early {
		return tally{skipped: 1}, nil
	}
	resp, err := r.ask(url)
	if err != nil {
		return tally{}, fmt.Errorf("poll feed: %w", err) // which names it
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotModified:
		r.wait(url, resp.Header)
		return tally{notModified: 1}, nil
	case http.StatusOK:
		t, err := r.read(url, resp)
		if err != nil {
			return t, fmt.Errorf("read feed %s: %w", url, err)
		}
		return t, nil
	}
	return tally{}, fmt.Errorf("poll feed %s: the server says %s", url, resp.Status)
}

// ask requests a feed if it has changed since the last time.
func (r *reader) ask(url string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	etag, modified, _ := strings.Cut(string(r.cache.Get(nil, key('v', url))), "\n")
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	if modified != "" {
		req.Header.Set("If-Modified-Since", modified)
	}
	return r.client.Do(req)
}

// read takes the articles of a feed that has been sent in full.
func (r *reader) read(url string, resp *http.Response) (tally, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxFeed+1))
	if err != nil {
		return tally{}, err
	}
	if len(text) > maxFeed {
		return tally{}, fmt.Errorf("more than %d bytes", maxFeed)
	}
	feed, err := gofeed.NewParser().Parse(bytes.NewReader(text))
	if err != nil {
		return tally{}, err
	}
	t := tally{fetched: 1, bytes: int64(len(text))}
	for _, item := range feed.Items {
		r.take(url, item, &t)
	}
	// Last of all: a feed that could not be read must be sent again.
	r.trust(url, resp.Header)
	r.wait(url, resp.Header)
	return t, nil
}

// take delivers an article, unless it was delivered before without changes.
func (r *reader) take(url string, item *gofeed.Item, t *tally) {
	k := key('a', url, cmp.Or(item.GUID, item.Link, item.Title))
	known := r.cache.Has(k)
	// Changes of other fields, such as dates, are ignored.
	changed, err := r.cache.SetIfChanged(k,
		digest(item.Title, item.Link, item.Description, item.Content))
	switch {
	case err == nil && !changed:
		t.unchanged++
		return
	case known:
		t.changed++
	default:
		t.added++
	}
	r.deliver(item) // if err is not nil, it is not remembered, and is delivered again
}

// trust stores the validators of this state of the feed.
func (r *reader) trust(url string, h http.Header) {
	k := key('v', url)
	validators := h.Get("ETag") + "\n" + h.Get("Last-Modified")
	if validators == "\n" {
		r.cache.Del(k)
		return
	}
	_ = r.cache.SetWithTTL(k, []byte(validators), trust) // else it is fetched again
}

// wait stores how long the feed asks to wait, if it does: an entry without a
// value that expires after that time.
func (r *reader) wait(url string, h http.Header) {
	for _, part := range strings.Split(h.Get("Cache-Control"), ",") {
		text, ok := strings.CutPrefix(strings.TrimSpace(part), "max-age=")
		seconds, err := strconv.ParseUint(text, 10, 31)
		if ok && err == nil && seconds > 0 {
			ttl := min(time.Duration(seconds)*time.Second, longestWait)
			_ = r.cache.SetWithTTL(key('w', url), nil, ttl) // else it is asked early
		}
	}
}

// key returns the key of an entry for some strings: 17 bytes, however long these
// are, with the kind of the entry in the first.
func key(kind byte, parts ...string) []byte { return append([]byte{kind}, digest(parts...)...) }

// digest returns a 16-byte digest of some strings. Feeds are untrusted, so it
// must be hard to construct strings with the same digest.
func digest(parts ...string) []byte {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte // so that "ab", "c" is not "a", "bc"
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		io.WriteString(h, part)
	}
	return h.Sum(nil)[:16]
}
