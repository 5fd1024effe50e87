module github.com/ringcache/ringcache/examples/codecs

go 1.24.0

replace github.com/ringcache/ringcache => ../..

require (
	github.com/ringcache/ringcache v0.1.0
	github.com/vmihailenco/msgpack/v5 v5.4.1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
)
