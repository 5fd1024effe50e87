package ringdebug

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// query is what a request asks for.
type query struct {
	cache     string // empty: all
	hasKey    bool
	key       string
	namespace *string // nil: the key is in none
	watch     time.Duration

	text, in string // key and namespace as entered
}

// parameters are the names that a query may have.
var parameters = []string{"cache", "key", "namespace", "seconds", "format"}

// parseQuery parses the query of a request. Errors are failures.
func parseQuery(r *http.Request) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, bad("the query is malformed: %v", err)
	}
	for name := range values {
		if !slices.Contains(parameters, name) {
			return query{}, bad("there is no parameter %q: there are %q", name, parameters)
		}
	}
	if f := values.Get("format"); !slices.Contains([]string{"", "html", "json"}, f) {
		return query{}, bad("format is %q, must be html or json", f)
	}
	q := query{
		cache: values.Get("cache"), hasKey: values.Has("key"),
		text: values.Get("key"), in: values.Get("namespace"),
	}
	if q.watch, err = parseSeconds(values.Get("seconds")); err != nil {
		return query{}, err
	}
	if !q.hasKey {
		if q.in != "" {
			return query{}, bad("a namespace needs a key")
		}
		return q, nil
	}
	if q.cache == "" || q.watch > 0 {
		return query{}, bad("a key needs a cache, and no seconds")
	}
	if q.key, err = parseName(q.text); err != nil {
		return query{}, bad("key: %v", err)
	}
	if q.in != "" { // the namespace with the empty name is ""
		name, err := parseName(q.in)
		if err != nil {
			return query{}, bad("namespace: %v", err)
		}
		q.namespace = &name
	}
	return q, nil
}

// parseSeconds returns how long to watch: 0 if text is empty.
func parseSeconds(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxSeconds {
		return 0, bad("seconds is %q, must be from 1 to %d", text, maxSeconds)
	}
	return time.Duration(n) * time.Second, nil
}

// bad returns the failure for an invalid request.
func bad(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}
