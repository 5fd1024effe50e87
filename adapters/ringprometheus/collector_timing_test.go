package ringprometheus

import (
	"encoding/binary"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

// BenchmarkScrape is one scrape of ten full caches: all that a server does for it but the
// network.
func BenchmarkScrape(b *testing.B) {
	caches := NewCollector()
	value := make([]byte, 200)
	for i := range 10 {
		c := newCache(b)
		require.NoError(b, caches.Register(fmt.Sprint("cache ", i), c))
		var key [8]byte
		for n := range uint64(2 * floor / 200) {
			binary.LittleEndian.PutUint64(key[:], n)
			require.NoError(b, c.Set(key[:], value))
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(caches)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	request := httptest.NewRequest("GET", "/metrics", nil)
	b.ReportAllocs()
	for b.Loop() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		require.Equal(b, 200, answer.Code)
	}
}
