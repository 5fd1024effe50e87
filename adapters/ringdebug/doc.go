// Package ringdebug serves a page about caches of package [github.com/ringcache/ringcache], in
// the manner of [net/http/pprof]: settings, statistics, namespaces, the hottest keys, and whether
// one key is there. Programs get the same as JSON.
//
//	page := ringdebug.New(ringdebug.Options{})
//	if err := page.Add("pages", cache, nil); err != nil {
//		log.Fatal(err)
//	}
//	http.Handle("/debug/ringcache", page)
//
// The page changes nothing in a cache, not even its statistics. It shows keys, so keep it from
// strangers: serve it on a port of its own, or behind a login.
package ringdebug
