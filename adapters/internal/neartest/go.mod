module github.com/ringcache/ringcache/adapters/internal/neartest

go 1.25.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/ringcache/ringcache v0.1.0
	github.com/ringcache/ringcache/adapters/ringrueidis v0.1.0
	github.com/ringcache/ringcache/adapters/ringvalkey v0.1.0
	github.com/stretchr/testify v1.12.1
	github.com/valkey-io/valkey-go v1.0.79
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/ringcache/ringcache => ../../..

replace github.com/ringcache/ringcache/adapters/ringrueidis => ../../ringrueidis

replace github.com/ringcache/ringcache/adapters/ringvalkey => ../../ringvalkey
