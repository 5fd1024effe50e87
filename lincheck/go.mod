module github.com/ringcache/ringcache/lincheck

go 1.24.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/ringcache/ringcache v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	golang.org/x/sys v0.41.0 // indirect
)

replace github.com/ringcache/ringcache => ../
