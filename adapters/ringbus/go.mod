module github.com/ringcache/ringcache/adapters/ringbus

go 1.24.0

require (
	github.com/ringcache/ringcache v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.41.0 // indirect
)

replace github.com/ringcache/ringcache => ../..
