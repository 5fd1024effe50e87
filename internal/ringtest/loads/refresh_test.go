package loads

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestLoader_OneRefresh(t *testing.T) {
	g := ringtest.Default(ringtest.MinBytes)
	g.RefreshAhead = 2 * time.Hour
	c := ringtest.MustCache(t, g)
	const keys, workers = 500, 4
	load, n := ringtest.Gives("fresh")
	load, release := held(load)
	for i := range keys {
		require.NoError(t, c.SetWithTTL([]byte{byte(i), byte(i >> 8)}, []byte("value"), time.Hour))
	}
	var wg sync.WaitGroup
	late := []byte{1, 0} // has seen that the entry is due, and comes when another has begun
	for range 2 {
		v, err := c.GetOrLoad(context.Background(), nil, late, load)
		require.NoError(t, err)
		require.Equal(t, "value", string(v))
	}
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range keys {
				v, err := c.GetOrLoad(context.Background(), nil, []byte{byte(i), byte(i >> 8)}, load)
				if err != nil || string(v) != "value" {
					assert.Fail(t, "loaded", "%q, %v", v, err)
				}
			}
		}()
	}
	wg.Wait()
	release()
	for i := range keys {
		ringtest.AwaitWaiting(t, c, []byte{byte(i), byte(i >> 8)}, -1)
		require.Equal(t, "fresh", string(c.Get(nil, []byte{byte(i), byte(i >> 8)})))
	}
	require.EqualValues(t, keys, n.Load())
}

// asking is a context whose Value is user code that calls the cache.
type asking struct {
	context.Context
	ask func()
}

func (a asking) Value(key any) any {
	a.ask()
	return a.Context.Value(key)
}

// No lock is held while the caller's context is asked for a value.
func TestLoader_ContextMayUseTheCache(t *testing.T) {
	g := ringtest.Default(ringtest.MinBytes)
	g.RefreshAhead = 2 * time.Hour
	c := ringtest.MustCache(t, g)
	k := []byte("key")
	load, _ := ringtest.Gives("fresh")
	ctx := asking{t.Context(), func() { _, _, _ = c.SetIfAbsent(nil, k, nil, 0) }}
	ringtest.Within(t, func() {
		_, err := c.GetOrLoad(ctx, nil, k, load)
		assert.NoError(t, err)
		assert.NoError(t, c.SetWithTTL(k, []byte("due"), time.Hour))
		v, err := c.GetOrLoad(ctx, nil, k, load)
		assert.NoError(t, err)
		assert.Equal(t, "due", string(v))
	})
	ringtest.AwaitWaiting(t, c, k, -1)
}
