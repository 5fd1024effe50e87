package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/suites/client"
)

func TestThroughputOfEachMix(t *testing.T) {
	for _, mix := range mixNames() {
		f, err := throughput(harness.Spec{
			Load: mix, Store: client.Ringcache, Scale: measure.Scale{Duration: time.Millisecond},
		})
		require.NoError(t, err)
		assert.Contains(t, f, allOps, mix)
		assert.Equal(t, mix != "reads 0 %", has(f, readOps), mix)
		assert.Equal(t, mix != "reads 100 %", has(f, writeOps), mix)
	}
	_, err := throughput(harness.Spec{Load: "reads 1 %", Store: client.Ringcache})
	require.Error(t, err)
}

func has(f harness.Metrics, name string) bool {
	_, ok := f[name]
	return ok
}

func TestMemoryOfEachCacheHoldsAllEntries(t *testing.T) {
	for _, name := range client.Names {
		f, err := memory(harness.Spec{Load: "1000", Store: name})
		require.NoError(t, err)
		assert.EqualValues(t, 1000, f[held], name)
	}
}
