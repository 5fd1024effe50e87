module github.com/ringcache/ringcache/adapters/ringgroupcache

go 1.24.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/groupcache/groupcache-go/v3 v3.2.0
	github.com/ringcache/ringcache v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/segmentio/fasthash v1.0.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.22.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
	google.golang.org/protobuf v1.28.1 // indirect
)

replace github.com/ringcache/ringcache => ../..
