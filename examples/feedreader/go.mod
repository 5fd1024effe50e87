module github.com/ringcache/ringcache/examples/feedreader

go 1.25.0

require (
	github.com/mmcdole/gofeed v1.4.2
	github.com/ringcache/ringcache v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/mmcdole/goxpp/v2 v2.0.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)

replace github.com/ringcache/ringcache => ../..
