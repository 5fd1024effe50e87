module github.com/ringcache/ringcache/bench

go 1.24.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/VictoriaMetrics/fastcache v1.13.3
	github.com/Yiling-J/theine-go v0.6.3
	github.com/allegro/bigcache/v3 v3.1.0
	github.com/coocood/freecache v1.2.7
	github.com/dgraph-io/ristretto/v2 v2.4.2
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/maypok86/otter/v2 v2.4.0
	github.com/ringcache/ringcache v0.1.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sys v0.41.0 // indirect
)

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/elastic/go-freelru v0.16.0
	github.com/klauspost/compress v1.19.2
	github.com/phuslu/lru v1.0.18
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/golang/snappy v1.0.0 // indirect
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.16.0 // indirect
)

replace github.com/ringcache/ringcache => ../
