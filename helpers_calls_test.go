package ringcache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/snapshot"
)

// call is a call of one method of *Cache.
type call struct {
	name string
	do   func(c *Cache, k, v []byte)
}

// noPath is one where no file can be: no folder is a program. What saving does is WriteSnapshot's
// to show.
var noPath = filepath.Join(os.Args[0], "snapshot")

// everyCall returns a call of each method. Results are dropped: the tests that use it
// ask whether the calls return at all, or how they panic.
func everyCall() []call {
	keep := func(v []byte) func([]byte, bool) ([]byte, bool) {
		return func([]byte, bool) ([]byte, bool) { return v, true }
	}
	load := func(v []byte) loadFunc {
		return func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil }
	}
	return []call{
		{"All", func(c *Cache, _, _ []byte) {
			for range c.All() {
			}
		}},
		{"Append", func(c *Cache, k, v []byte) { _ = c.Append(k, v[:1]) }},
		{"Close", func(c *Cache, _, _ []byte) { _ = c.Close() }},
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
				func(context.Context, [][]byte) ([]loaded, error) { return []loaded{{Value: v}}, nil })
		}},
		{"GetWithTTL", func(c *Cache, k, _ []byte) { c.GetWithTTL(nil, k) }},
		{"Has", func(c *Cache, k, _ []byte) { c.Has(k) }},
		{"HasGet", func(c *Cache, k, _ []byte) { c.HasGet(nil, k) }},
		{"HasGetUncounted", func(c *Cache, k, _ []byte) { c.HasGetUncounted(nil, k) }},
		{"Keys", func(c *Cache, _, _ []byte) {
			for range c.Keys() {
			}
		}},
		{"Len", func(c *Cache, _, _ []byte) { c.Len() }},
		{"Namespace", func(c *Cache, k, _ []byte) { c.Namespace(string(k)) }},
		{"Peek", func(c *Cache, k, _ []byte) { c.Peek(nil, k) }},
		{"ReadSnapshot", func(c *Cache, _, _ []byte) {
			var h snapshot.Header
			_, _ = c.ReadSnapshot(bytes.NewReader(new(snapshot.End).Append(h.Append(nil), &h)))
		}},
		{"Reset", func(c *Cache, _, _ []byte) { c.Reset() }},
		{"Resize", func(c *Cache, _, _ []byte) { _ = c.Resize(2 * minMaxBytes) }},
		{"Save", func(c *Cache, _, _ []byte) {
			_ = c.Save(context.Background(), noPath, SaveOptions{})
		}},
		{"SaveToFile", func(c *Cache, _, _ []byte) { _ = c.SaveToFile(noPath) }},
		{"Set", func(c *Cache, k, v []byte) { _ = c.Set(k, v) }},
		{"SetBatch", func(c *Cache, k, v []byte) {
			_ = c.SetBatch([][]byte{k, k}, [][]byte{v, v[1:]})
		}},
		{"SetBatchWithTTL", func(c *Cache, k, v []byte) {
			_ = c.SetBatchWithTTL([][]byte{k, k}, [][]byte{v, v[1:]}, time.Hour)
		}},
		{"SetIfAbsent", func(c *Cache, k, v []byte) { _, _ = c.SetIfAbsent(k, v) }},
		{"SetIfAbsentWithTTL", func(c *Cache, k, v []byte) {
			_, _, _ = c.SetIfAbsentWithTTL(nil, k, v, time.Hour)
		}},
		{"SetIfChanged", func(c *Cache, k, v []byte) { _, _ = c.SetIfChanged(k, v[1:]) }},
		{"SetWithTTL", func(c *Cache, k, v []byte) { _ = c.SetWithTTL(k, v, time.Hour) }},
		{"Sizing", func(c *Cache, _, _ []byte) { c.Sizing() }},
		{"Stats", func(c *Cache, _, _ []byte) { c.Stats() }},
		{"TTL", func(c *Cache, k, _ []byte) { c.TTL(k) }},
		{"Touch", func(c *Cache, k, _ []byte) { c.Touch(k, time.Hour) }},
		{"Update", func(c *Cache, k, v []byte) { _ = c.Update(k, keep(v)) }},
		{"UpdateStats", func(c *Cache, _, _ []byte) { c.UpdateStats(new(Stats)) }},
		{"UpdateWithTTL", func(c *Cache, k, v []byte) {
			_ = c.UpdateWithTTL(k, time.Hour, keep(v))
		}},
		{"View", func(c *Cache, k, _ []byte) { c.View(k, func([]byte) {}) }},
		{"WriteSnapshot", func(c *Cache, _, _ []byte) { _, _ = c.WriteSnapshot(io.Discard) }},
	}
}

// viewCalls returns a call of each method of a namespace and of a typed view in it.
func viewCalls() []call {
	ctx := context.Background()
	space := func(c *Cache) *Namespace { return c.Namespace("space") }
	view := func(c *Cache) *Typed[string, []byte] {
		return NewTyped[string](space(c), codec.Bytes[[]byte](), TypedOptions{})
	}
	same := func(old []byte, ok bool) ([]byte, bool) { return old, ok }
	return []call{
		{"Namespace.Get", func(c *Cache, k, _ []byte) { space(c).Get(nil, k) }},
		{"Namespace.HasGet", func(c *Cache, k, _ []byte) { space(c).HasGet(nil, k) }},
		{"Namespace.Has", func(c *Cache, k, _ []byte) { space(c).Has(k) }},
		{"Namespace.Peek", func(c *Cache, k, _ []byte) { space(c).Peek(nil, k) }},
		{"Namespace.GetWithTTL", func(c *Cache, k, _ []byte) { space(c).GetWithTTL(nil, k) }},
		{"Namespace.View", func(c *Cache, k, _ []byte) { space(c).View(k, func([]byte) {}) }},
		{"Namespace.GetBatch", func(c *Cache, k, _ []byte) {
			space(c).GetBatch(nil, [][]byte{k, k}, make([][]byte, 2))
		}},
		{"Namespace.Set", func(c *Cache, k, v []byte) { _ = space(c).Set(k, v) }},
		{"Namespace.SetWithTTL", func(c *Cache, k, v []byte) {
			_ = space(c).SetWithTTL(k, v, time.Hour)
		}},
		{"Namespace.SetIfAbsent", func(c *Cache, k, v []byte) { _, _ = space(c).SetIfAbsent(k, v) }},
		{"Namespace.SetIfAbsentWithTTL", func(c *Cache, k, v []byte) {
			_, _, _ = space(c).SetIfAbsentWithTTL(nil, k, v, time.Hour)
		}},
		{"Namespace.CompareAndSwap", func(c *Cache, k, v []byte) {
			_, _ = space(c).CompareAndSwap(k, v, v[1:])
		}},
		{"Namespace.SetBatchWithTTL", func(c *Cache, k, v []byte) {
			_ = space(c).SetBatchWithTTL([][]byte{k}, [][]byte{v}, time.Hour)
		}},
		{"Namespace.UpdateWithTTL", func(c *Cache, k, _ []byte) {
			_ = space(c).UpdateWithTTL(k, time.Hour, same)
		}},
		{"Namespace.Append", func(c *Cache, k, v []byte) { _ = space(c).Append(k, v[:1]) }},
		{"Namespace.SetIfChanged", func(c *Cache, k, v []byte) {
			_, _ = space(c).SetIfChanged(k, v)
		}},
		{"Namespace.SetBatch", func(c *Cache, k, v []byte) {
			_ = space(c).SetBatch([][]byte{k, k}, [][]byte{v, v[1:]})
		}},
		{"Namespace.Update", func(c *Cache, k, _ []byte) { _ = space(c).Update(k, same) }},
		{"Namespace.Del", func(c *Cache, k, _ []byte) { space(c).Del(k) }},
		{"Namespace.GetAndDel", func(c *Cache, k, _ []byte) { space(c).GetAndDel(nil, k) }},
		{"Namespace.Touch", func(c *Cache, k, _ []byte) { space(c).Touch(k, time.Hour) }},
		{"Namespace.TTL", func(c *Cache, k, _ []byte) { space(c).TTL(k) }},
		{"Namespace.GetOrLoad", func(c *Cache, k, v []byte) {
			_, _ = space(c).GetOrLoad(ctx, nil, append([]byte("n "), k...),
				func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil })
		}},
		{"Namespace.GetOrLoadBatch", func(c *Cache, k, v []byte) {
			keys := [][]byte{append([]byte("n batch "), k...)}
			_, _, _ = space(c).GetOrLoadBatch(ctx, nil, keys, make([][]byte, 1),
				func(context.Context, [][]byte) ([]loaded, error) {
					return []loaded{{Value: v}}, nil
				})
		}},
		{"Namespace.All", func(c *Cache, _, _ []byte) {
			for range space(c).All() {
			}
		}},
		{"Namespace.Keys", func(c *Cache, _, _ []byte) {
			for range space(c).Keys() {
			}
		}},
		{"Namespace.Invalidate", func(c *Cache, _, _ []byte) { _ = space(c).Invalidate() }},
		{"Namespace.SetQuota", func(c *Cache, k, _ []byte) { _ = space(c).SetQuota(int64(len(k))) }},
		{"Namespace.Drop", func(c *Cache, k, _ []byte) { _ = c.Namespace(string(k)).Drop() }},
		{"Namespace.Stats", func(c *Cache, _, _ []byte) { space(c).Stats() }},
		{"Typed.Get", func(c *Cache, k, _ []byte) { _, _, _ = view(c).Get(string(k)) }},
		{"Typed.Peek", func(c *Cache, k, _ []byte) { _, _, _ = view(c).Peek(string(k)) }},
		{"Typed.GetWithTTL", func(c *Cache, k, _ []byte) {
			_, _, _, _ = view(c).GetWithTTL(string(k))
		}},
		{"Typed.Has", func(c *Cache, k, _ []byte) { view(c).Has(string(k)) }},
		{"Typed.Set", func(c *Cache, k, v []byte) { _ = view(c).Set(string(k), v) }},
		{"Typed.SetWithTTL", func(c *Cache, k, v []byte) {
			_ = view(c).SetWithTTL(string(k), v, time.Hour)
		}},
		{"Typed.SetIfAbsent", func(c *Cache, k, v []byte) {
			_, _ = view(c).SetIfAbsent(string(k), v)
		}},
		{"Typed.SetIfAbsentWithTTL", func(c *Cache, k, v []byte) {
			_, _, _ = view(c).SetIfAbsentWithTTL(string(k), v, time.Hour)
		}},
		{"Typed.CompareAndSwap", func(c *Cache, k, v []byte) {
			_, _ = view(c).CompareAndSwap(string(k), v, v[1:])
		}},
		{"Typed.SetBatchWithTTL", func(c *Cache, k, v []byte) {
			_ = view(c).SetBatchWithTTL([]string{string(k)}, [][]byte{v}, time.Hour)
		}},
		{"Typed.UpdateWithTTL", func(c *Cache, k, _ []byte) {
			_ = view(c).UpdateWithTTL(string(k), time.Hour, same)
		}},
		{"Typed.SetIfChanged", func(c *Cache, k, v []byte) {
			_, _ = view(c).SetIfChanged(string(k), v)
		}},
		{"Typed.SetBatch", func(c *Cache, k, v []byte) {
			_ = view(c).SetBatch([]string{string(k)}, [][]byte{v})
		}},
		{"Typed.GetBatch", func(c *Cache, k, _ []byte) {
			_, _ = view(c).GetBatch([]string{string(k)}, make([][]byte, 1), make([]bool, 1))
		}},
		{"Typed.Update", func(c *Cache, k, _ []byte) { _ = view(c).Update(string(k), same) }},
		{"Typed.Del", func(c *Cache, k, _ []byte) { view(c).Del(string(k)) }},
		{"Typed.GetAndDel", func(c *Cache, k, _ []byte) { _, _, _ = view(c).GetAndDel(string(k)) }},
		{"Typed.Touch", func(c *Cache, k, _ []byte) { view(c).Touch(string(k), time.Hour) }},
		{"Typed.TTL", func(c *Cache, k, _ []byte) { view(c).TTL(string(k)) }},
		{"Typed.GetOrLoad", func(c *Cache, k, v []byte) {
			_, _ = view(c).GetOrLoad(ctx, "t "+string(k),
				func(context.Context, string) ([]byte, time.Duration, error) { return v, 0, nil })
		}},
		{"Typed.GetOrLoadBatch", func(c *Cache, k, v []byte) {
			_, _ = view(c).GetOrLoadBatch(ctx, []string{"t batch " + string(k)},
				make([][]byte, 1), make([]bool, 1),
				func(context.Context, []string) ([]Loaded[[]byte], error) {
					return []Loaded[[]byte]{{Value: v}}, nil
				})
		}},
		{"Typed.All", func(c *Cache, _, _ []byte) {
			for range view(c).All() {
			}
		}},
		{"Typed.Keys", func(c *Cache, _, _ []byte) {
			for range view(c).Keys() {
			}
		}},
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

	methods, table = nil, nil
	for _, v := range []reflect.Type{
		reflect.TypeFor[*Namespace](), reflect.TypeFor[*Typed[string, []byte]](),
	} {
		name, _, _ := strings.Cut(v.Elem().Name(), "[")
		for i := range v.NumMethod() {
			methods = append(methods, name+"."+v.Method(i).Name)
		}
	}
	for _, c := range viewCalls() {
		table = append(table, c.name)
	}
	require.ElementsMatch(t, methods, table)
}

// A view has the methods of a cache, but for those named here with a reason.
func TestViews_HaveTheMethodsOfCache(t *testing.T) {
	const ofAll = "it is about the whole cache"
	onlyCache := map[string]string{
		"Close": ofAll, "DeleteExpired": ofAll, "ReadSnapshot": ofAll, "Resize": ofAll,
		"Save": ofAll, "SaveToFile": ofAll,
		"Sizing": ofAll, "UpdateStats": ofAll, "WriteSnapshot": ofAll, "Namespace": ofAll,
		"Len":   "to count the entries of a view, a loop goes over all; Namespace.Stats has them",
		"Reset": "Namespace.Invalidate does it in constant time",

		"HasGetUncounted": "for adapters that answer one question with several entries",
	}
	onlyBytes := map[string]string{
		"Append": "an encoding is seldom the beginning of another",
		"HasGet": "Get tells a miss from a value",
		"View":   "Get decodes from a buffer that is used again, and copies nothing",
		"Stats":  "a view without a namespace has none, and one with it has those of the namespace",
	}
	ofView := map[string]string{
		"Drop": "of a namespace", "Invalidate": "of a namespace", "SetQuota": "of a namespace",
	}
	names := func(v reflect.Type) map[string]bool {
		all := map[string]bool{}
		for i := range v.NumMethod() {
			all[v.Method(i).Name] = true
		}
		return all
	}
	ofCache := names(reflect.TypeFor[*Cache]())
	for _, v := range []struct {
		methods map[string]bool
		lacks   []map[string]string
	}{
		{names(reflect.TypeFor[*Namespace]()), []map[string]string{onlyCache}},
		{names(reflect.TypeFor[*Typed[string, int]]()), []map[string]string{onlyCache, onlyBytes}},
	} {
		missing := maps.Clone(ofCache)
		for _, reasons := range v.lacks {
			for name := range reasons {
				require.True(t, missing[name], "%s is no method of Cache", name)
				require.False(t, v.methods[name], "%s is there", name)
				delete(missing, name)
			}
		}
		for name := range v.methods {
			_, own := ofView[name]
			require.True(t, own || ofCache[name], "Cache has no %s", name)
			delete(missing, name)
		}
		require.Empty(t, missing, "methods of Cache that a view lacks without a reason")
	}
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
