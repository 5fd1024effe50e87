package ringmiddleware

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parsing of headers.

// maxTime is the upper limit of all times; longer ones are reduced to it. The cache's clock ends
// after 13 years, and the age of an entry that never expires would be unknown.
const maxTime = 365 * 24 * time.Hour

// directives are those of a Cache-Control header, by their names in lower case.
type directives map[string]string

// directivesOf parses the Cache-Control of a header. If a directive appears twice, the first one
// counts.
func directivesOf(h http.Header) directives {
	values := h.Values("Cache-Control")
	if len(values) == 0 {
		return nil
	}
	d := directives{}
	for _, part := range list(values) {
		name, value, _ := strings.Cut(part, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := d[name]; !twice {
			d[name] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return d
}

// hasAny reports whether any of the directives is present.
func (d directives) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := d[name]
		return ok
	})
}

// time returns the time in a directive, and whether the directive is present.
func (d directives) time(name string) (time.Duration, bool) {
	value, ok := d[name]
	return seconds(value), ok
}

// list splits the values of a header at commas outside of quotes, and omits empty elements. A quote
// that is not closed does not count as one, so that it cannot hide a directive such as private.
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
		rest := []string{value[from:]}
		if quoted {
			rest = strings.Split(rest[0], ",")
		}
		for _, part := range rest {
			parts = appendPart(parts, part)
		}
	}
	return parts
}

func appendPart(parts []string, part string) []string {
	if part = strings.TrimSpace(part); part != "" {
		parts = append(parts, part)
	}
	return parts
}

// hasAny reports whether any of the headers is present and not empty.
func hasAny(h http.Header, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.Join(h.Values(name), "") != ""
	})
}

// canonical returns a copy of a header with canonical names. A handler may have put other spellings
// into the map, such as lower case.
func canonical(h http.Header) http.Header {
	c := make(http.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		c[name] = append(c[name], values...)
	}
	return c
}

// seconds parses a number of seconds; an invalid one is 0.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(n, uint64(maxTime/time.Second))) * time.Second
}

// date returns the time in a header, and false if there is none or it is invalid.
func date(h http.Header, name string) (time.Time, bool) {
	t, err := http.ParseTime(h.Get(name))
	return t, err == nil
}

// clientHas reports whether the conditions of a request show that the client already has the
// response. Tags are compared weakly, as RFC 9110 requires: a W/ prefix is ignored.
func clientHas(request, response http.Header) bool {
	if tags := list(request.Values("If-None-Match")); len(tags) > 0 {
		etag := response.Get("Etag")
		return etag != "" && slices.ContainsFunc(tags, func(tag string) bool {
			return tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/")
		})
	}
	since, ok := date(request, "If-Modified-Since")
	modified, has := date(response, "Last-Modified")
	return ok && has && !modified.After(since)
}

// ofConnection are headers that belong to a connection or a single message, and are not stored.
var ofConnection = []string{
	"Connection", "Content-Length", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authentication-Info", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade",
}

// fieldsOf returns the fields of a response's header that are stored, sorted by name.
func fieldsOf(h http.Header) []field {
	left := slices.Clone(ofConnection)
	for _, name := range list(h.Values("Connection")) {
		left = append(left, http.CanonicalHeaderKey(name))
	}
	var fields []field
	for name, values := range h {
		if slices.Contains(left, name) {
			continue
		}
		for _, value := range values {
			fields = append(fields, field{name, value})
		}
	}
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

// varyNames returns the names in the values of Vary, sorted and without duplicates.
func varyNames(values []string) []string {
	names := list(values)
	for i, name := range names {
		names[i] = http.CanonicalHeaderKey(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
