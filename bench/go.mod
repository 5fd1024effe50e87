module github.com/ringcache/ringcache/bench

go 1.24.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/VictoriaMetrics/fastcache v1.13.0
	github.com/allegro/bigcache/v3 v3.1.0
	github.com/coocood/freecache v1.2.7
	github.com/patrickmn/go-cache v2.1.0+incompatible
	github.com/ringcache/ringcache v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang/snappy v1.0.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
)

replace github.com/ringcache/ringcache => ../
