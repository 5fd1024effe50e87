package model

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A nil *Cache is a nil pointer like any other: a panic that can be recovered from, and
// not a fault that ends the process.
func TestNilCache_PanicsRecoverably(t *testing.T) {
	k, v := []byte("key"), []byte("value")
	for _, call := range ringtest.EveryCall() {
		t.Run(call.Name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				var fault runtime.Error
				require.ErrorAs(t, err, &fault)
			}()
			call.Do(nil, k, v)
		})
	}
	var n *ringcache.Cache
	var view *ringcache.Typed[string, int]
	for _, call := range []func(){
		func() { n.Get(nil, k) }, func() { _ = n.Set(k, v) }, func() { n.Reset() },
		func() { n.Stats() }, func() { n.Del(k) }, func() { n.HasGet(nil, k) },
		func() { _, _, _ = view.Get("k") }, func() { _ = view.Set("k", 1) },
		func() { view.Has("k") }, func() { _ = view.SetBatch([]string{"k"}, []int{1}) },
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				var fault runtime.Error
				require.ErrorAs(t, err, &fault)
			}()
			call()
		}()
	}
}
