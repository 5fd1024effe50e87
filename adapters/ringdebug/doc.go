// Package ringdebug serves a debug page for caches of package [github.com/ringcache/ringcache],
// similar to [net/http/pprof]: settings, statistics, namespaces, the hottest keys, and whether a
// given key is present. The same data is available as JSON.
//
//	page := ringdebug.New(ringdebug.Options{})
//	if err := page.Add("pages", cache, nil); err != nil {
//		log.Fatal(err)
//	}
//	http.Handle("/debug/ringcache", page)
//
// The page offers no changes, and its lookups are not counted. It shows keys, so do not make it
// public: serve it on a separate port or behind a login.
package ringdebug
