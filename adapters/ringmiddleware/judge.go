package ringmiddleware

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// Which responses may be stored, for whom and for how long: RFC 9111, sections 3 and 4.2.

// audience is the set of requests that a response may answer. Each audience includes those before
// it.
type audience uint8

const (
	anonymous audience = iota // requests without Cookie and Authorization
	unnamed                   // requests without Authorization
	everyone
)

// audienceOf returns the smallest audience that a request belongs to.
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

// keptCodes are the status codes of responses that may be stored. The value is true if RFC 9110
// allows this without an explicit lifetime (heuristically cacheable). 206 is not supported, and
// other errors are not worth storing even if they have a lifetime.
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

// judge decides from the header whether a response may be stored. took is the time since the
// handler was called. The returned entry has no header and body yet. said reports whether the
// response states its lifetime.
func (m *Middleware) judge(code int, h http.Header, took time.Duration) (e entry, said, ok bool) {
	guessed, kept := keptCodes[code]
	d, target := targeted(h)
	if !target {
		d = directivesOf(h)
	}
	if !kept || d.hasAny("no-store", "private") ||
		hasAny(h, "Set-Cookie", "Trailer", "Content-Range") ||
		slices.Contains(varyNames(h.Values("Vary")), "*") {
		return e, false, false
	}
	lifetime, said := lifetimeOf(h, d, target)
	if !said {
		if lifetime = m.options.TTL; lifetime == 0 || !guessed {
			return e, false, false
		}
	}
	e = entry{code: code, lifetime: lifetime, age: ageOf(h, took)}
	// Its data may be as old as the call.
	e.validator = validatorOf(code, h, dateOf(h).Add(-took))
	always := d.hasAny("no-cache") // the handler is asked for each request
	if always && e.validator == noValidator {
		return e, false, false
	}
	switch {
	case d.hasAny("public", "s-maxage", "must-revalidate"): // RFC 9111, section 3.5
		e.audience = everyone
	case said && !always:
		e.audience = unnamed
	}
	if while := m.options.StaleWhileRevalidate; while > 0 {
		e.whileRevalidate = staleFor(d, "stale-while-revalidate", while)
	}
	e.ifError = staleFor(d, "stale-if-error", m.options.StaleIfError)
	return e, said, e.keep() >= minKeep || e.age < e.lifetime
}

// minKeep is the shortest time for which a response is stored: a few ticks of the cache's clock.
// One with less time left is for the requests that wait for it.
const minKeep = 500 * time.Millisecond

// lifetimeOf returns how long a response is fresh, and whether it states this. Expires does not
// count if the directives are targeted.
func lifetimeOf(h http.Header, d directives, target bool) (t time.Duration, said bool) {
	if d.hasAny("no-cache") {
		return 0, true
	}
	if t, said = d.time("s-maxage"); said { // for shared caches only, so it takes precedence
		return t, true
	}
	if t, said = d.time("max-age"); said {
		return t, true
	}
	if target || len(h.Values("Expires")) == 0 {
		return 0, false
	}
	expires, ok := date(h, "Expires")
	if !ok { // such as 0
		return 0, true
	}
	return min(max(0, expires.Sub(dateOf(h))), maxTime).Truncate(time.Millisecond), true
}

// dateOf returns the time in Date, or the present one, which the server adds.
func dateOf(h http.Header) time.Time {
	if made, ok := date(h, "Date"); ok {
		return made
	}
	return time.Now()
}

// ageOf returns the age of a response when it arrives. It includes the time in other caches (Age,
// Date), and took, because the handler may have read its data when it was called.
func ageOf(h http.Header, took time.Duration) time.Duration {
	said, _, _ := strings.Cut(h.Get("Age"), ",") // of several, the first counts
	said, _, _ = strings.Cut(said, ";")          // parameters
	age := seconds(textproto.TrimString(said)) + max(0, took)
	if made, ok := date(h, "Date"); ok {
		age = max(age, time.Since(made).Truncate(time.Second)) // Date has whole seconds
	}
	return min(age+time.Millisecond-1, maxTime).Truncate(time.Millisecond)
}

// staleFor returns how long after its lifetime a response may be served according to the directive,
// or else to the option.
func staleFor(d directives, directive string, otherwise time.Duration) time.Duration {
	t, said := d.time(directive)
	switch {
	case d.hasAny("must-revalidate", "proxy-revalidate", "no-cache"):
		return 0
	case said:
		return t
	case d.hasAny("s-maxage"):
		return 0
	default:
		return otherwise
	}
}
