package ringotel_test

import (
	"context"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringotel"
)

func Example() {
	reader := sdk.NewManualReader() // or sdk.NewPeriodicReader with an exporter
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))

	pages := ringcache.New(32 << 20)
	defer pages.Close()
	registration, err := ringotel.Register(provider, "pages", pages)
	if err != nil {
		log.Fatal(err)
	}
	defer registration.Unregister()

	_ = pages.Set([]byte("/"), []byte("welcome"))
	pages.Has([]byte("/"))
	pages.Has([]byte("/"))
	pages.Has([]byte("/missing"))

	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		log.Fatal(err)
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if m.Name == "ringcache.lookups" {
			for _, point := range m.Data.(metricdata.Sum[float64]).DataPoints {
				result, _ := point.Attributes.Value("ringcache.lookup.result")
				fmt.Println(m.Name, result.AsString(), point.Value)
			}
		}
	}
	// Unordered output:
	// ringcache.lookups hit 2
	// ringcache.lookups miss 1
}
