package ringdebug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ringcache/ringcache"
)

// Errors of [Handler.Add]. Test for them with [errors.Is].
var (
	ErrInvalidName = errors.New("name must be printable and not empty")
	ErrNameTaken   = errors.New("name is taken")
)

const (
	// maxSeconds is the longest watch, and maxWatches the number of watches at once.
	maxSeconds = 60
	maxWatches = 4
)

// Options are the settings of a [Handler]. The zero value is safe.
type Options struct {
	// ShowValues makes a lookup of a key show the beginning of its value. By default the page shows
	// only the length.
	ShowValues bool
}

// Handler is the page, an [http.Handler] for a single path of your choice. [New] returns one. It is
// safe for concurrent use.
type Handler struct {
	options  Options
	wait     func(ctx context.Context, d time.Duration) (waited time.Duration, err error)
	watching atomic.Int32

	mu     sync.Mutex
	caches map[string]source
}

var _ http.Handler = (*Handler)(nil)

// source is a cache on the page.
type source struct {
	name  string
	ref   weak.Pointer[ringcache.Cache]
	reads *Reads
}

// shown is a source whose cache has not been collected.
type shown struct {
	source
	cache *ringcache.Cache
}

// New returns a page without caches.
func New(o Options) *Handler {
	return &Handler{options: o, wait: wait, caches: map[string]source{}}
}

// Add adds a cache to the page. The program reports the keys that it reads to reads; if reads is
// nil, the page shows no hot keys. The error is [ErrInvalidName] or [ErrNameTaken], wrapped. Add
// panics if the cache is nil.
//
// Between requests, the page does not keep the cache alive. A cache that has been garbage collected
// disappears from the page, and its name can be used again. Closing a cache does not remove it.
func (h *Handler) Add(name string, c *ringcache.Cache, reads *Reads) error {
	if c == nil {
		panic("ringdebug: add cache: cache is nil")
	}
	if name == "" || strings.ContainsFunc(name, isHidden) {
		return fmt.Errorf("ringdebug: add cache %q: %w", name, ErrInvalidName)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.caches[name].ref.Value() != nil {
		return fmt.Errorf("ringdebug: add cache %q: %w", name, ErrNameTaken)
	}
	h.caches[name] = source{name, weak.Make(c), reads}
	return nil
}

// Remove removes the cache with that name from the page, if there is one.
func (h *Handler) Remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.caches, name)
}

// show returns the caches of the page in order of their names.
func (h *Handler) show() (all []shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.caches)) {
		s := h.caches[name]
		if c := s.ref.Value(); c != nil {
			all = append(all, shown{s, c})
		} else {
			delete(h.caches, name)
		}
	}
	return all
}

// ServeHTTP answers GET and HEAD requests with this query:
//
//	(nothing)                      all caches
//	cache=NAME                     one cache, with its namespaces
//	cache=NAME&key=KEY             one key; status 404 if it is not in the cache
//	  &namespace=NAME              its namespace
//	seconds=1..60                  watch for that many seconds
//	format=html|json               the default is html
//
// A KEY or the NAME of a namespace that begins with a double quote or backquote is a Go string.
//
// A watch lasts as long as its request and leaves nothing running. At most four watches of a
// Handler run at once; further ones get status 503.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeader(w.Header())
	asJSON := r.URL.Query().Get("format") == "json" // errors too
	p, err := h.answer(w, r)
	if r.Context().Err() != nil {
		return // the client has gone
	}
	if err != nil {
		fail(w, err, asJSON)
		return
	}
	send(w, p, asJSON)
}

// answer returns the page for a request.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) (*page, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return nil, &failure{http.StatusMethodNotAllowed, "only GET and HEAD are allowed"}
	}
	q, err := parseQuery(r)
	if err != nil {
		return nil, err
	}
	p := &page{Time: time.Now(), query: q, withValues: h.options.ShowValues}
	all := h.show()
	if q.cache != "" {
		all = slices.DeleteFunc(all, func(s shown) bool { return s.name != q.cache })
		if len(all) == 0 {
			return nil, &failure{http.StatusNotFound, fmt.Sprintf("there is no cache %q", q.cache)}
		}
	}
	if q.hasKey {
		return p, h.lookUp(p, all[0].cache)
	}
	if q.watch > 0 {
		return p, h.watch(w, r, p, all)
	}
	for _, s := range all {
		p.add(reportOf(s.name, s.cache), s.cache)
	}
	return p, nil
}

// lookUp adds the entry of the key to the page.
func (h *Handler) lookUp(p *page, c *ringcache.Cache) error {
	q := p.query
	in := placeOf(c, q.namespace)
	if in == nil {
		return &failure{http.StatusNotFound,
			fmt.Sprintf("cache %q has no namespace %q", q.cache, *q.namespace)}
	}
	e := look(in, q.namespace, []byte(q.key), h.options.ShowValues)
	p.Entry = &e
	return nil
}

// watch adds reports of the caches for the next seconds.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, p *page, all []shown) error {
	defer h.watching.Add(-1)
	if h.watching.Add(1) > maxWatches {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.query.watch/time.Second)))
		return &failure{http.StatusServiceUnavailable,
			fmt.Sprintf("%d watches are running, the maximum: try again later", maxWatches)}
	}
	extendDeadline(w, r, p.query.watch)
	before := make([]ringcache.Stats, len(all))
	watches := make([]*watch, len(all))
	for i, s := range all {
		before[i] = s.cache.Stats()
		if s.reads != nil {
			watches[i] = s.reads.start()
			defer s.reads.stop(watches[i])
		}
	}
	waited, err := h.wait(r.Context(), p.query.watch)
	if err != nil {
		return err
	}
	p.Time = time.Now()
	for i, s := range all {
		report := reportOf(s.name, s.cache)
		span := report.Stats.Sub(before[i])
		report.Watched = &watched{
			Seconds: waited.Seconds(), Stats: span, HitRatio: span.HitRatio(),
		}
		if s.reads != nil {
			report.Watched.HotKeys = watches[i].hottest(s.cache)
		}
		p.add(report, s.cache)
	}
	return nil
}

// wait waits for d, or until ctx ends, which is an error.
func wait(ctx context.Context, d time.Duration) (waited time.Duration, err error) {
	from := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Since(from), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// extendDeadline lets the server's WriteTimeout begin when the watch ends, as package
// net/http/pprof does.
func extendDeadline(w http.ResponseWriter, r *http.Request, d time.Duration) {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if ok && server.WriteTimeout > 0 {
		// If it cannot be set, the answer may come too late, which the client notices.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(server.WriteTimeout + d))
	}
}

// failure is an error with an HTTP status.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

// fail answers with an error.
func fail(w http.ResponseWriter, err error, asJSON bool) {
	status := http.StatusInternalServerError
	if f := (*failure)(nil); errors.As(err, &f) {
		status = f.status
	}
	if !asJSON {
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that the client has gone.
	_ = json.NewEncoder(w).Encode(struct{ Error string }{err.Error()})
}
