package main

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// directives are the parts of a Cache-Control header, their names in lower case.
type directives map[string]string

// directivesOf reads the Cache-Control of a header. Of a directive that is given
// twice, the first counts.
func directivesOf(h http.Header) directives {
	d := directives{}
	for _, part := range list(h.Values("Cache-Control")) {
		name, value, _ := strings.Cut(part, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := d[name]; !twice {
			d[name] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return d
}

// hasAny reports whether one of the directives is there.
func (d directives) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := d[name]
		return ok
	})
}

// list splits the values of a header at their commas, but for commas in quotes,
// and leaves out what is empty.
func list(values []string) []string {
	var parts []string
	for _, value := range values {
		quoted, from := false, 0
		for i := 0; i < len(value); i++ {
			switch c := value[i]; {
			case c == '\\' && quoted:
				i++
			case c == '"':
				quoted = !quoted
			case c == ',' && !quoted:
				parts = appendPart(parts, value[from:i])
				from = i + 1
			}
		}
		parts = appendPart(parts, value[from:])
	}
	return parts
}

func appendPart(parts []string, part string) []string {
	if part = strings.TrimSpace(part); part != "" {
		parts = append(parts, part)
	}
	return parts
}

// hasAny reports whether one of the headers is there.
func hasAny(h http.Header, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return h.Get(name) != "" })
}

// asks reports whether a request has the directive.
func asks(r *http.Request, directive string) bool {
	return hasAny(r.Header, "Cache-Control") && directivesOf(r.Header).hasAny(directive)
}

// keptCodes are the answers that are worth keeping.
var keptCodes = []int{
	http.StatusOK, http.StatusMovedPermanently, http.StatusPermanentRedirect,
	http.StatusNotFound, http.StatusGone,
}

// mayKeep reports whether a shared cache may keep the response to a request, and
// this one can.
func mayKeep(r *http.Request, code int, h http.Header) bool {
	return r.Method == http.MethodGet && slices.Contains(keptCodes, code) && freshFor(h) > 0 &&
		!hasAny(h, "Set-Cookie", "Trailer") && !slices.Contains(list(h.Values("Vary")), "*") &&
		!directivesOf(h).hasAny("no-store", "no-cache", "private")
}

// lifetime returns how long a response is good for from the moment when its
// server made it, 0 if the server does not say.
func lifetime(h http.Header) time.Duration {
	d := directivesOf(h)
	if shared, ok := d["s-maxage"]; ok { // meant for us alone, so it goes first
		return seconds(shared)
	}
	return seconds(d["max-age"])
}

// freshFor returns how long a response is still good for: another cache on the
// way may have had it for a while.
func freshFor(h http.Header) time.Duration { return lifetime(h) - seconds(h.Get("Age")) }

// seconds reads a number of seconds as headers have it. One that makes no sense
// is 0, and a year is the most: the cache's clock knows no times beyond some, and
// an entry that never expired would have no age.
func seconds(s string) time.Duration {
	const most = 365 * 24 * 3600
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(n, most)) * time.Second
}

// clientHas reports whether a request has the response with this ETag already.
// Tags are compared weakly, as RFC 9110 asks for: a W/ in front does not count.
func clientHas(request http.Header, etag string) bool {
	if etag == "" {
		return false
	}
	return slices.ContainsFunc(list(request.Values("If-None-Match")), func(tag string) bool {
		return tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/")
	})
}
