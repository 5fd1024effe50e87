module github.com/ringcache/ringcache/examples/gctrace

go 1.24.0

require (
	github.com/allegro/bigcache/v3 v3.1.0
	github.com/patrickmn/go-cache v2.1.0+incompatible
	github.com/ringcache/ringcache v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	golang.org/x/sys v0.41.0 // indirect
)

replace github.com/ringcache/ringcache => ../..
