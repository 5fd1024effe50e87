package ringmiddleware

import (
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Parsing of headers.

// maxTime is the upper limit of all times; longer ones are reduced to it. The cache's clock ends
// after 13 years, and the age of an entry that never expires would be unknown.
const maxTime = 365 * 24 * time.Hour

// lower folds ASCII letters only: strings.ToLower would make a k of a Kelvin sign.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

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
		name = lower(textproto.TrimString(name))
		if _, twice := d[name]; !twice {
			d[name] = strings.Trim(textproto.TrimString(value), `"`)
		}
	}
	return d
}

// targeted returns the directives of CDN-Cache-Control (RFC 9213), which replace Cache-Control and
// Expires. It returns false if the header has none or is invalid, and is to be ignored.
func targeted(h http.Header) (directives, bool) {
	dict, err := httpsfv.UnmarshalDictionary(h.Values("CDN-Cache-Control"))
	if err != nil || len(dict.Names()) == 0 {
		return nil, false
	}
	d := directives{}
	for _, name := range dict.Names() {
		member, _ := dict.Get(name)
		item, _ := member.(httpsfv.Item) // or a list, which no directive has
		n, number := item.Value.(int64)
		switch {
		case slices.Contains(timed, name) && !number:
			return nil, false
		case number:
			d[name] = strconv.FormatInt(n, 10)
		case item.Value != false:
			d[name] = ""
		}
	}
	return d, true
}

// timed are the directives of responses whose value is a number of seconds.
var timed = []string{"max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"}

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
	if part = textproto.TrimString(part); part != "" {
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

// dateForms are those of RFC 9110, section 5.6.7.
var dateForms = []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// date returns the time in a header, and false if there is none or it is invalid. time.Parse also
// accepts other spacing and hours of one digit, so the time is formatted again to compare what
// follows the weekday.
func date(h http.Header, name string) (t time.Time, ok bool) {
	values := h.Values(name)
	if len(values) != 1 {
		return t, false
	}
	_, said, _ := strings.Cut(lower(values[0]), " ")
	for _, form := range dateForms {
		t, err := time.Parse(form, values[0])
		_, again, _ := strings.Cut(lower(t.Format(form)), " ")
		if err == nil && again == said {
			return t, true
		}
	}
	return t, false
}

// clientHas reports whether the conditions of a request show that the client already has the
// response. Tags are compared weakly, as RFC 9110 requires: a W/ prefix is ignored.
func clientHas(request, response http.Header) bool {
	if tags := list(request.Values("If-None-Match")); len(tags) > 0 {
		etag := response.Get("Etag")
		return etag != "" && slices.ContainsFunc(tags, func(tag string) bool {
			return tag == "*" || sameTag(tag, etag)
		})
	}
	since, ok := date(request, "If-Modified-Since")
	modified, has := date(response, "Last-Modified")
	return ok && has && !modified.After(since)
}

// sameTag compares two entity tags weakly.
func sameTag(a, b string) bool { return strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/") }

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
