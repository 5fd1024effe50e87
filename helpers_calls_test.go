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

// storeCalls returns a call of each method that a cache and its views have in common, by name.
func storeCalls(of func(c *Cache) calls) map[string]func(c *Cache, k, v []byte) {
	ctx := context.Background()
	same := func(old []byte, ok bool) ([]byte, bool) { return old, ok }
	return map[string]func(c *Cache, k, v []byte){
		"Get":             func(c *Cache, k, _ []byte) { of(c).Get(nil, k) },
		"HasGet":          func(c *Cache, k, _ []byte) { of(c).HasGet(nil, k) },
		"HasGetUncounted": func(c *Cache, k, _ []byte) { of(c).HasGetUncounted(nil, k) },
		"Has":             func(c *Cache, k, _ []byte) { of(c).Has(k) },
		"Peek":            func(c *Cache, k, _ []byte) { of(c).Peek(nil, k) },
		"GetWithTTL":      func(c *Cache, k, _ []byte) { of(c).GetWithTTL(nil, k) },
		"View":            func(c *Cache, k, _ []byte) { of(c).View(k, func([]byte) {}) },
		"GetBatch": func(c *Cache, k, _ []byte) {
			of(c).GetBatch(nil, [][]byte{k, k}, make([][]byte, 2))
		},
		"Set":         func(c *Cache, k, v []byte) { _ = of(c).Set(k, v) },
		"SetWithTTL":  func(c *Cache, k, v []byte) { _ = of(c).SetWithTTL(k, v, time.Hour) },
		"SetIfAbsent": func(c *Cache, k, v []byte) { _, _ = of(c).SetIfAbsent(k, v) },
		"SetIfAbsentWithTTL": func(c *Cache, k, v []byte) {
			_, _, _ = of(c).SetIfAbsentWithTTL(nil, k, v, time.Hour)
		},
		"SetIfChanged":   func(c *Cache, k, v []byte) { _, _ = of(c).SetIfChanged(k, v[1:]) },
		"CompareAndSwap": func(c *Cache, k, v []byte) { _, _ = of(c).CompareAndSwap(k, v, v[1:]) },
		"SetBatch": func(c *Cache, k, v []byte) {
			_ = of(c).SetBatch([][]byte{k, k}, [][]byte{v, v[1:]})
		},
		"SetBatchWithTTL": func(c *Cache, k, v []byte) {
			_ = of(c).SetBatchWithTTL([][]byte{k, k}, [][]byte{v, v[1:]}, time.Hour)
		},
		"Update": func(c *Cache, k, _ []byte) { _ = of(c).Update(k, same) },
		"UpdateWithTTL": func(c *Cache, k, _ []byte) {
			_ = of(c).UpdateWithTTL(k, time.Hour, same)
		},
		"Append":    func(c *Cache, k, v []byte) { _ = of(c).Append(k, v[:1]) },
		"Del":       func(c *Cache, k, _ []byte) { of(c).Del(k) },
		"GetAndDel": func(c *Cache, k, _ []byte) { of(c).GetAndDel(nil, k) },
		"Touch":     func(c *Cache, k, _ []byte) { of(c).Touch(k, time.Hour) },
		"TTL":       func(c *Cache, k, _ []byte) { of(c).TTL(k) },
		"GetOrLoad": func(c *Cache, k, v []byte) {
			_, _ = of(c).GetOrLoad(ctx, nil, append([]byte("load "), k...),
				func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil })
		},
		"GetOrLoadBatch": func(c *Cache, k, v []byte) {
			keys := [][]byte{append([]byte("load batch "), k...)}
			_, _, _ = of(c).GetOrLoadBatch(ctx, nil, keys, make([][]byte, 1),
				func(context.Context, [][]byte) ([]loaded, error) {
					return []loaded{{Value: v}}, nil
				})
		},
		"All": func(c *Cache, _, _ []byte) {
			for range of(c).All() {
			}
		},
		"Keys": func(c *Cache, _, _ []byte) {
			for range of(c).Keys() {
			}
		},
	}
}

// viewCalls returns a call of each method of a namespace and of a typed view in it.
func viewCalls() (all []call) {
	space := func(c *Cache) *Namespace { return c.Namespace("space") }
	for name, do := range storeCalls(func(c *Cache) calls { return space(c) }) {
		all = append(all, call{"Namespace." + name, do})
	}
	view := reflect.TypeFor[*Typed[string, []byte]]()
	for name, do := range storeCalls(func(c *Cache) calls { return newTypedStore(space(c), "") }) {
		if _, ok := view.MethodByName(name); ok {
			all = append(all, call{"Typed." + name, do})
		}
	}
	return append(all,
		call{"Namespace.Invalidate", func(c *Cache, _, _ []byte) { _ = space(c).Invalidate() }},
		call{"Namespace.SetQuota", func(c *Cache, k, _ []byte) {
			_ = space(c).SetQuota(int64(len(k)))
		}},
		call{"Namespace.Drop", func(c *Cache, k, _ []byte) { _ = c.Namespace(string(k)).Drop() }},
		call{"Namespace.Stats", func(c *Cache, _, _ []byte) { space(c).Stats() }},
	)
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
	}
	onlyBytes := map[string]string{
		"Append": "an encoding is seldom the beginning of another",
		"HasGet": "Get tells a miss from a value",
		"View":   "Get decodes from a buffer that is used again, and copies nothing",
		"Stats":  "a view in a namespace has those of the namespace, another has none",

		"HasGetUncounted": "for adapters that answer one question with several entries",
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
