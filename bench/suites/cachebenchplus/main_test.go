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

func TestThroughputOfEachLoad(t *testing.T) {
	for _, load := range []string{loadGet, loadGetOne, loadSet} {
		f, err := throughput(harness.Spec{
			Load: load, Store: client.RingcacheTyped, Scale: measure.Scale{Duration: time.Millisecond},
		})
		require.NoError(t, err)
		assert.Positive(t, f[nsPerOp], load)
		if load == loadSet {
			assert.Contains(t, f, held)
		} else {
			assert.Contains(t, f, hits)
		}
	}
}
