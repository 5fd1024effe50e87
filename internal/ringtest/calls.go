package ringtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/snapshot"
)

// Call is a call of one method of *Cache.
type Call struct {
	Name string
	Do   func(c *ringcache.Cache, k, v []byte)
}

// noPath is one where no file can be: no folder is a program. What saving does is WriteSnapshot's
// to show.
var noPath = filepath.Join(os.Args[0], "snapshot")

// EveryCall returns a call of each method. Results are dropped: the tests that use it
// ask whether the calls return at all, or how they panic.
func EveryCall() []Call {
	load := func(v []byte) LoadFunc {
		return func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil }
	}
	return []Call{
		{"All", func(c *ringcache.Cache, _, _ []byte) {
			for range c.All() {
			}
		}},
		{"Close", func(c *ringcache.Cache, _, _ []byte) { _ = c.Close() }},
		{"CompareAndSwap", func(c *ringcache.Cache, k, v []byte) {
			_, _ = c.CompareAndSwap(k, v, v[1:])
		}},
		{"Del", func(c *ringcache.Cache, k, _ []byte) { c.Del(k) }},
		{"DeleteExpired", func(c *ringcache.Cache, _, _ []byte) { c.DeleteExpired() }},
		{"DropNamespace", func(c *ringcache.Cache, k, _ []byte) {
			c.Namespace(string(k))
			_ = c.DropNamespace(string(k))
		}},
		{"Get", func(c *ringcache.Cache, k, v []byte) { c.Get(make([]byte, 0, len(v)), k) }},
		{"GetAndDel", func(c *ringcache.Cache, k, _ []byte) { c.GetAndDel(nil, k) }},
		{"GetBatch", func(c *ringcache.Cache, k, v []byte) {
			c.GetBatch(make([]byte, 0, 2*len(v)), [][]byte{k, k}, make([][]byte, 2))
		}},
		{"GetOrLoad", func(c *ringcache.Cache, k, v []byte) {
			_, _ = c.GetOrLoad(context.Background(), nil, k, load(v))
		}},
		{"GetOrLoadBatch", func(c *ringcache.Cache, k, v []byte) {
			_, _, _ = c.GetOrLoadBatch(context.Background(), nil, [][]byte{k, k}, make([][]byte, 2),
				func(context.Context, [][]byte) ([]Loaded, error) { return []Loaded{{Value: v}}, nil })
		}},
		{"GetWithTTL", func(c *ringcache.Cache, k, _ []byte) { c.GetWithTTL(nil, k) }},
		{"Has", func(c *ringcache.Cache, k, _ []byte) { c.Has(k) }},
		{"HasGet", func(c *ringcache.Cache, k, _ []byte) { c.HasGet(nil, k) }},
		{"Keys", func(c *ringcache.Cache, _, _ []byte) {
			for range c.Keys() {
			}
		}},
		{"Len", func(c *ringcache.Cache, _, _ []byte) { c.Len() }},
		{"Namespace", func(c *ringcache.Cache, k, _ []byte) { c.Namespace(string(k)) }},
		{"Namespaces", func(c *ringcache.Cache, _, _ []byte) {
			for range c.Namespaces() {
			}
		}},
		{"Options", func(c *ringcache.Cache, _, _ []byte) { c.Options() }},
		{"Peek", func(c *ringcache.Cache, k, _ []byte) { c.Peek(nil, k) }},
		{"ReadSnapshot", func(c *ringcache.Cache, _, _ []byte) {
			var h snapshot.Header
			_, _ = c.ReadSnapshot(bytes.NewReader(new(snapshot.End).Append(h.Append(nil), &h)))
		}},
		{"Reset", func(c *ringcache.Cache, _, _ []byte) { c.Reset() }},
		{"Resize", func(c *ringcache.Cache, _, _ []byte) { _ = c.Resize(2 * MinBytes) }},
		{"Save", func(c *ringcache.Cache, _, _ []byte) {
			_ = c.Save(context.Background(), noPath, ringcache.SaveOptions{})
		}},
		{"SaveToFile", func(c *ringcache.Cache, _, _ []byte) { _ = c.SaveToFile(noPath) }},
		{"Set", func(c *ringcache.Cache, k, v []byte) { _ = c.Set(k, v) }},
		{"SetBatch", func(c *ringcache.Cache, k, v []byte) {
			_ = c.SetBatch([][]byte{k, k}, [][]byte{v, v[1:]})
		}},
		{"SetBatchWithTTL", func(c *ringcache.Cache, k, v []byte) {
			_ = c.SetBatchWithTTL([][]byte{k, k}, [][]byte{v, v[1:]}, time.Hour)
		}},
		{"SetIfAbsent", func(c *ringcache.Cache, k, v []byte) {
			_, _, _ = c.SetIfAbsent(nil, k, v, time.Hour)
		}},
		{"SetIfChanged", func(c *ringcache.Cache, k, v []byte) { _, _ = c.SetIfChanged(k, v[1:]) }},
		{"SetWithTTL", func(c *ringcache.Cache, k, v []byte) { _ = c.SetWithTTL(k, v, time.Hour) }},
		{"Stats", func(c *ringcache.Cache, _, _ []byte) { c.Stats() }},
		{"TTL", func(c *ringcache.Cache, k, _ []byte) { c.TTL(k) }},
		{"Touch", func(c *ringcache.Cache, k, _ []byte) { c.Touch(k, time.Hour) }},
		{"Update", func(c *ringcache.Cache, k, v []byte) { _ = c.Update(k, Store(v)) }},
		{"UpdateStats", func(c *ringcache.Cache, _, _ []byte) { c.UpdateStats(new(ringcache.Stats)) }},
		{"WriteSnapshot", func(c *ringcache.Cache, _, _ []byte) { _, _ = c.WriteSnapshot(io.Discard) }},
	}
}

// storeCalls returns a call of each method that a cache and its views have in common, by name.
func storeCalls(
	of func(c *ringcache.Cache) Calls,
) map[string]func(c *ringcache.Cache, k, v []byte) {
	ctx := context.Background()
	same := Replace(func(old []byte, ok bool) ([]byte, bool) { return old, ok })
	return map[string]func(c *ringcache.Cache, k, v []byte){
		"Get":        func(c *ringcache.Cache, k, _ []byte) { of(c).Get(nil, k) },
		"HasGet":     func(c *ringcache.Cache, k, _ []byte) { of(c).HasGet(nil, k) },
		"Has":        func(c *ringcache.Cache, k, _ []byte) { of(c).Has(k) },
		"Peek":       func(c *ringcache.Cache, k, _ []byte) { of(c).Peek(nil, k) },
		"GetWithTTL": func(c *ringcache.Cache, k, _ []byte) { of(c).GetWithTTL(nil, k) },
		"GetBatch": func(c *ringcache.Cache, k, _ []byte) {
			of(c).GetBatch(nil, [][]byte{k, k}, make([][]byte, 2))
		},
		"Set":        func(c *ringcache.Cache, k, v []byte) { _ = of(c).Set(k, v) },
		"SetWithTTL": func(c *ringcache.Cache, k, v []byte) { _ = of(c).SetWithTTL(k, v, time.Hour) },
		"SetIfAbsent": func(c *ringcache.Cache, k, v []byte) {
			_, _, _ = of(c).SetIfAbsent(nil, k, v, time.Hour)
		},
		"SetIfChanged": func(c *ringcache.Cache, k, v []byte) { _, _ = of(c).SetIfChanged(k, v[1:]) },
		"CompareAndSwap": func(c *ringcache.Cache, k, v []byte) {
			_, _ = of(c).CompareAndSwap(k, v, v[1:])
		},
		"SetBatch": func(c *ringcache.Cache, k, v []byte) {
			_ = of(c).SetBatch([][]byte{k, k}, [][]byte{v, v[1:]})
		},
		"SetBatchWithTTL": func(c *ringcache.Cache, k, v []byte) {
			_ = of(c).SetBatchWithTTL([][]byte{k, k}, [][]byte{v, v[1:]}, time.Hour)
		},
		"Update":    func(c *ringcache.Cache, k, _ []byte) { _ = of(c).Update(k, same) },
		"Del":       func(c *ringcache.Cache, k, _ []byte) { of(c).Del(k) },
		"GetAndDel": func(c *ringcache.Cache, k, _ []byte) { of(c).GetAndDel(nil, k) },
		"Touch":     func(c *ringcache.Cache, k, _ []byte) { of(c).Touch(k, time.Hour) },
		"TTL":       func(c *ringcache.Cache, k, _ []byte) { of(c).TTL(k) },
		"GetOrLoad": func(c *ringcache.Cache, k, v []byte) {
			_, _ = of(c).GetOrLoad(ctx, nil, append([]byte("load "), k...),
				func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil })
		},
		"GetOrLoadBatch": func(c *ringcache.Cache, k, v []byte) {
			keys := [][]byte{append([]byte("load batch "), k...)}
			_, _, _ = of(c).GetOrLoadBatch(ctx, nil, keys, make([][]byte, 1),
				func(context.Context, [][]byte) ([]Loaded, error) {
					return []Loaded{{Value: v}}, nil
				})
		},
		"All": func(c *ringcache.Cache, _, _ []byte) {
			for range of(c).All() {
			}
		},
		"Keys": func(c *ringcache.Cache, _, _ []byte) {
			for range of(c).Keys() {
			}
		},
		"Len":   func(c *ringcache.Cache, _, _ []byte) { of(c).Len() },
		"Reset": func(c *ringcache.Cache, _, _ []byte) { of(c).Reset() },
	}
}

// ViewCalls returns a call of each method of a namespace, except those about namespaces, and of a
// typed view in it.
func ViewCalls() (all []Call) {
	space := func(c *ringcache.Cache) *ringcache.Cache { return c.Namespace("space") }
	for _, call := range EveryCall() {
		switch call.Name {
		case "Namespace", "Namespaces", "DropNamespace":
		default:
			all = append(all, Call{"Namespace." + call.Name, func(c *ringcache.Cache, k, v []byte) {
				call.Do(space(c), k, v)
			}})
		}
	}
	view := reflect.TypeFor[*ringcache.Typed[string, []byte]]()
	for name, do := range storeCalls(func(c *ringcache.Cache) Calls {
		return newTypedStore(space(c), "")
	}) {
		if _, ok := view.MethodByName(name); ok {
			all = append(all, Call{"Typed." + name, do})
		}
	}
	return all
}

// HangLimit is what a call may take before it is said to hang, on a busy machine too.
const HangLimit = time.Minute

var errHangs = errors.New("it hangs: a lock was left held, or waits for itself")

// InTime returns what fn returns, or errHangs. fn runs in a goroutine, which stays if it
// hangs.
func InTime(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(HangLimit):
		return errHangs
	}
}

// BytesView is a view that stores what it is given.
func BytesView(c *ringcache.Cache) *ringcache.Typed[[]byte, []byte] {
	return ringcache.NewTyped[[]byte](c, codec.Bytes[[]byte](), ringcache.TypedOptions{})
}

// Usable reports whether the bucket of k works, unless c is closed, and closes c.
func Usable(c *ringcache.Cache, k, v []byte) error {
	if err := c.Set(k, v); !errors.Is(err, ringcache.ErrClosed) {
		if got, ok := c.HasGet(nil, k); err != nil || !ok || !bytes.Equal(got, v) {
			return fmt.Errorf("afterwards Set returns %v, and Get finds %v: %.20q", err, ok, got)
		}
		if err := Validate(c); err != nil {
			return err
		}
		if n := c.Len(); n == 0 {
			return errors.New("afterwards Len is 0")
		}
	}
	return c.Close()
}
