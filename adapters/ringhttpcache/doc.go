// Package ringhttpcache stores the responses of the HTTP client cache [httpcache] in a
// [ringcache.Cache], in bounded memory, usually off the Go heap, which other code can share.
//
//	cache := ringcache.New(256 << 20) // at most 256 MB
//	responses := ringhttpcache.New(cache, ringhttpcache.Options{Prefix: "http:"})
//	client := httpcache.NewTransport(responses).Client()
//
// [httpcache]: https://github.com/gregjones/httpcache
package ringhttpcache
