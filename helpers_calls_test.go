package ringcache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/snapshot"
)

// call is a call of one method of *Cache.
type call struct {
	name string
	do   func(c *Cache, k, v []byte)
}

// noPath is one where no file can be: no folder is a program. What saving does is WriteTo's
// to show.
var noPath = filepath.Join(os.Args[0], "snapshot")

// everyCall returns a call of each method. Results are dropped: the tests that use it
// ask whether the calls return at all, or how they panic.
func everyCall() []call {
	keep := func(v []byte) func([]byte, bool) ([]byte, bool) {
		return func([]byte, bool) ([]byte, bool) { return v, true }
	}
	load := func(v []byte) LoadFunc {
		return func(context.Context, []byte) (Loaded, error) { return Loaded{Value: v}, nil }
	}
	return []call{
		{"All", func(c *Cache, _, _ []byte) {
			for range c.All() {
			}
		}},
		{"Append", func(c *Cache, k, v []byte) { _ = c.Append(k, v[:1]) }},
		{"Close", func(c *Cache, _, _ []byte) { _ = c.Close() }},
		{"CollapseHugePages", func(c *Cache, _, _ []byte) {
			_, _ = c.CollapseHugePages(context.Background())
		}},
		{"CompareAndSwap", func(c *Cache, k, v []byte) { _, _ = c.CompareAndSwap(k, v, v[1:]) }},
		{"Del", func(c *Cache, k, _ []byte) { c.Del(k) }},
		{"DeleteExpired", func(c *Cache, _, _ []byte) { c.DeleteExpired() }},
		{"Get", func(c *Cache, k, v []byte) { c.Get(make([]byte, 0, len(v)), k) }},
		{"GetAndDel", func(c *Cache, k, _ []byte) { c.GetAndDel(nil, k) }},
		{"GetBatch", func(c *Cache, k, v []byte) {
			c.GetBatch(make([]byte, 0, 2*len(v)), [][]byte{k, k}, make([][]byte, 2))
		}},
		{"GetOrLoad", func(c *Cache, k, v []byte) {
			_, _ = c.GetOrLoad(context.Background(), nil, k, load(v))
		}},
		{"GetOrLoadBatch", func(c *Cache, k, v []byte) {
			_, _, _ = c.GetOrLoadBatch(context.Background(), nil, [][]byte{k, k}, make([][]byte, 2),
				func(context.Context, [][]byte) ([]Loaded, error) { return []Loaded{{Value: v}}, nil })
		}},
		{"GetWithTTL", func(c *Cache, k, _ []byte) { c.GetWithTTL(nil, k) }},
		{"Has", func(c *Cache, k, _ []byte) { c.Has(k) }},
		{"HasGet", func(c *Cache, k, _ []byte) { c.HasGet(nil, k) }},
		{"Keys", func(c *Cache, _, _ []byte) {
			for range c.Keys() {
			}
		}},
		{"Len", func(c *Cache, _, _ []byte) { c.Len() }},
		{"Namespace", func(c *Cache, k, _ []byte) { c.Namespace(string(k)) }},
		{"Peek", func(c *Cache, k, _ []byte) { c.Peek(nil, k) }},
		{"ReadFrom", func(c *Cache, _, _ []byte) {
			var h snapshot.Header
			_, _ = c.ReadFrom(bytes.NewReader(new(snapshot.End).Append(h.Append(nil), &h)))
		}},
		{"Reset", func(c *Cache, _, _ []byte) { c.Reset() }},
		{"Resize", func(c *Cache, _, _ []byte) { _ = c.Resize(2 * minMaxBytes) }},
		{"Save", func(c *Cache, _, _ []byte) {
			_ = c.Save(context.Background(), noPath, SaveOptions{})
		}},
		{"SaveToFile", func(c *Cache, _, _ []byte) { _ = c.SaveToFile(noPath) }},
		{"SaveToFileConcurrent", func(c *Cache, _, _ []byte) {
			_ = c.SaveToFileConcurrent(noPath, 1)
		}},
		{"Set", func(c *Cache, k, v []byte) { _ = c.Set(k, v) }},
		{"SetBatch", func(c *Cache, k, v []byte) {
			_ = c.SetBatch([][]byte{k, k}, [][]byte{v, v[1:]})
		}},
		{"SetIfAbsent", func(c *Cache, k, v []byte) { _, _ = c.SetIfAbsent(k, v) }},
		{"SetIfChanged", func(c *Cache, k, v []byte) { _, _ = c.SetIfChanged(k, v[1:]) }},
		{"SetWithTTL", func(c *Cache, k, v []byte) { _ = c.SetWithTTL(k, v, time.Hour) }},
		{"Sizing", func(c *Cache, _, _ []byte) { c.Sizing() }},
		{"Stats", func(c *Cache, _, _ []byte) { c.Stats() }},
		{"TTL", func(c *Cache, k, _ []byte) { c.TTL(k) }},
		{"Touch", func(c *Cache, k, _ []byte) { c.Touch(k, time.Hour) }},
		{"Update", func(c *Cache, k, v []byte) { _ = c.Update(k, keep(v)) }},
		{"UpdateStats", func(c *Cache, _, _ []byte) { c.UpdateStats(new(Stats)) }},
		{"View", func(c *Cache, k, _ []byte) { c.View(k, func([]byte) {}) }},
		{"WriteTo", func(c *Cache, _, _ []byte) { _, _ = c.WriteTo(io.Discard) }},
	}
}

// What is not in the table is not tested by those who go through it.
func TestEveryCall_NamesAllMethods(t *testing.T) {
	var methods, table []string
	for m, i := reflect.TypeFor[*Cache](), 0; i < m.NumMethod(); i++ {
		methods = append(methods, m.Method(i).Name)
	}
	for _, c := range everyCall() {
		table = append(table, c.name)
	}
	require.Equal(t, methods, table, "both are in order of names")
}

// hangLimit is what a call may take before it is said to hang.
const hangLimit = 10 * time.Second

var errHangs = errors.New("it hangs: a lock was left held, or waits for itself")

// inTime returns what fn returns, or errHangs. fn runs in a goroutine, which stays if it
// hangs.
func inTime(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(hangLimit):
		return errHangs
	}
}
