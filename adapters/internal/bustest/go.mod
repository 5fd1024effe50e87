module github.com/ringcache/ringcache/adapters/internal/bustest

go 1.25.0

require (
	github.com/nats-io/nats-server/v2 v2.14.0
	github.com/nats-io/nats.go v1.51.0
	github.com/redis/rueidis v1.0.79
	github.com/ringcache/ringcache v0.1.0
	github.com/ringcache/ringcache/adapters/ringbus v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.7.0-default-no-op // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.1 // indirect
	github.com/nats-io/nkeys v0.4.15 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.50.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/ringcache/ringcache => ../../..

replace github.com/ringcache/ringcache/adapters/ringbus => ../../ringbus
