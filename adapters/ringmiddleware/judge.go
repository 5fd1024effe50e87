package ringmiddleware

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// What may be kept, for whom and for how long: RFC 9111, sections 3 and 4.2.

// audience says whose requests a response may answer. Each takes in those before it.
type audience uint8

const (
	anonymous audience = iota // requests without Cookie and Authorization
	unnamed                   // requests without Authorization
	everyone
)

// audienceOf returns which one a request belongs to.
func audienceOf(h http.Header) audience {
	switch {
	case hasAny(h, "Authorization"):
		return everyone
	case hasAny(h, "Cookie"):
		return unnamed
	default:
		return anonymous
	}
}

// keptCodes are the status codes of responses that are kept, and whether they are without a
// word about how long: RFC 9110 calls those heuristically cacheable. 206 is not understood
// here, and other errors are not worth keeping, whatever they say.
var keptCodes = map[int]bool{
	http.StatusOK:                   true,
	http.StatusNonAuthoritativeInfo: true,
	http.StatusNoContent:            true,
	http.StatusMultipleChoices:      true,
	http.StatusMovedPermanently:     true,
	http.StatusFound:                false,
	http.StatusSeeOther:             false,
	http.StatusTemporaryRedirect:    false,
	http.StatusPermanentRedirect:    true,
	http.StatusNotFound:             true,
	http.StatusMethodNotAllowed:     true,
	http.StatusGone:                 true,
	http.StatusRequestURITooLong:    true,
	http.StatusNotImplemented:       true,
}

// judge decides from the header alone whether a response may be kept. took is how long the
// handler has been at it. The entry that judge returns has no header and body yet. said means
// that the handler has given the lifetime itself.
func (m *Middleware) judge(code int, h http.Header, took time.Duration) (e entry, said, ok bool) {
	guessed, kept := keptCodes[code]
	d := directivesOf(h)
	if !kept || d.hasAny("no-store", "no-cache", "private") ||
		hasAny(h, "Set-Cookie", "Trailer", "Content-Range") ||
		slices.Contains(varyNames(h.Values("Vary")), "*") {
		return e, false, false
	}
	lifetime, said := lifetimeOf(h, d)
	if !said {
		if lifetime = m.options.TTL; lifetime == 0 || !guessed {
			return e, false, false
		}
	}
	e = entry{code: code, lifetime: lifetime, age: ageOf(h, took)}
	switch {
	case d.hasAny("public", "s-maxage", "must-revalidate"): // RFC 9111, section 3.5
		e.audience = everyone
	case said:
		e.audience = unnamed
	}
	if while := m.options.StaleWhileRevalidate; while > 0 {
		e.whileRevalidate = staleFor(d, "stale-while-revalidate", while)
	}
	e.ifError = staleFor(d, "stale-if-error", m.options.StaleIfError)
	return e, said, e.keep() >= minKeep
}

// minKeep is the shortest time that something is kept for: a few ticks of the cache.
const minKeep = 500 * time.Millisecond

// lifetimeOf returns how long a response is fresh, and whether it says so itself.
func lifetimeOf(h http.Header, d directives) (t time.Duration, said bool) {
	if t, said = d.time("s-maxage"); said { // meant for us alone, so it goes first
		return t, true
	}
	if t, said = d.time("max-age"); said {
		return t, true
	}
	if h.Get("Expires") == "" {
		return 0, false
	}
	expires, ok := date(h, "Expires")
	if !ok { // such as 0
		return 0, true
	}
	made, ok := date(h, "Date")
	if !ok {
		made = time.Now()
	}
	return min(max(0, expires.Sub(made)), maxTime).Truncate(time.Millisecond), true
}

// ageOf returns how old a response is when it comes. Another cache on the way may have had it
// for a while; and what a handler has read may be as old as the request to it.
func ageOf(h http.Header, took time.Duration) time.Duration {
	age := seconds(strings.TrimSpace(h.Get("Age"))) + max(0, took)
	if made, ok := date(h, "Date"); ok {
		age = max(age, time.Since(made))
	}
	return min(age+time.Millisecond-1, maxTime).Truncate(time.Millisecond)
}

// staleFor returns how long a response may be served after its lifetime, for the reason that
// the directive names.
func staleFor(d directives, directive string, otherwise time.Duration) time.Duration {
	t, said := d.time(directive)
	switch {
	case d.hasAny("must-revalidate", "proxy-revalidate"):
		return 0
	case said:
		return t
	case d.hasAny("s-maxage"):
		return 0
	default:
		return otherwise
	}
}
