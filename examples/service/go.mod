module github.com/ringcache/ringcache/examples/service

go 1.26.0

replace (
	github.com/ringcache/ringcache => ../..
	github.com/ringcache/ringcache/adapters/ringprometheus => ../../adapters/ringprometheus
	github.com/ringcache/ringcache/adapters/ringstatsviz => ../../adapters/ringstatsviz
)

require (
	github.com/prometheus/client_golang v1.25.0
	github.com/ringcache/ringcache v0.1.0
	github.com/ringcache/ringcache/adapters/ringprometheus v0.1.0
	github.com/ringcache/ringcache/adapters/ringstatsviz v0.1.0
	github.com/stretchr/testify v1.12.1
	modernc.org/sqlite v1.62.0
)

require (
	github.com/arl/statsviz v0.8.2 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	modernc.org/libc v1.80.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
