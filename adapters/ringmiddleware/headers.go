package ringmiddleware

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How headers are read: lists, directives, times.

// maxTime is the longest time that is told from longer ones. The cache's clock ends after 13
// years, and an entry that never expired would have no age.
const maxTime = 365 * 24 * time.Hour

// directives are the parts of a Cache-Control header, their names in lower case.
type directives map[string]string

// directivesOf reads the Cache-Control of a header. Of a directive that is given twice, the
// first counts.
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

// hasAny reports whether one of the directives is there.
func (d directives) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := d[name]
		return ok
	})
}

// time returns the time that a directive gives, and whether it is there.
func (d directives) time(name string) (time.Duration, bool) {
	value, ok := d[name]
	return seconds(value), ok
}

// list splits the values of a header at their commas, but for commas in quotes, and leaves
// out what is empty. A quote without an end is none: it must not hide a private.
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

// hasAny reports whether one of the headers is there, and not just empty.
func hasAny(h http.Header, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.Join(h.Values(name), "") != ""
	})
}

// canonical returns a copy of a header with all names as net/http writes them. Who puts a name
// into the map in lower case means the same.
func canonical(h http.Header) http.Header {
	c := make(http.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		c[name] = append(c[name], values...)
	}
	return c
}

// seconds reads a number of seconds as headers have it. One that makes no sense is 0.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(n, uint64(maxTime/time.Second))) * time.Second
}

// date returns the time that a header gives, and false if that is none.
func date(h http.Header, name string) (time.Time, bool) {
	t, err := http.ParseTime(h.Get(name))
	return t, err == nil
}

// clientHas reports whether a request has the response with this header already. Tags are
// compared weakly, as RFC 9110 asks for: a W/ in front does not count.
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

// ofConnection are headers of a connection, or of an answer, and not of what is kept.
var ofConnection = []string{
	"Connection", "Content-Length", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authentication-Info", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade",
}

// fieldsOf returns the fields of a response's header that are kept, in the order of names.
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

// varyNames returns the names in the values of Vary, sorted, each once.
func varyNames(values []string) []string {
	names := list(values)
	for i, name := range names {
		names[i] = http.CanonicalHeaderKey(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
