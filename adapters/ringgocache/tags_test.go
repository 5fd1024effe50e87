package ringgocache_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringgocache"
)

func TestInvalidate(t *testing.T) {
	s := newStoreWithTags(t, []string{"a", "b", "c", ""})
	set := func(key string, tags ...string) {
		require.NoError(t, s.Set(ctx, key, []byte(key), withTags(tags...)))
	}
	setAll := func() {
		set("none")
		set("a", "a")
		set("b", "b")
		set("a,b", "a", "b") // other stores separate keys by commas
		set("ba", "b", "a", "b")
		set("empty", "")
	}
	for tag, gone := range map[string][]string{
		"a":     {"a", "a,b", "ba"},
		"b":     {"b", "a,b", "ba"},
		"":      {"empty"},
		"c":     nil,
		"never": nil,
	} {
		t.Run(tag, func(t *testing.T) {
			setAll()
			invalidate(t, s, tag)
			for _, key := range []string{"none", "a", "b", "a,b", "ba", "empty"} {
				if slices.Contains(gone, key) {
					requireNone(t, s, key)
				} else {
					requireValue(t, s, key, []byte(key))
				}
			}
		})
	}
	setAll()
	invalidate(t, s, "a", "b")
	for _, key := range []string{"a", "b", "a,b", "ba"} {
		requireNone(t, s, key)
	}
	setAll()
	invalidate(t, s)
	require.NoError(t, s.Invalidate(ctx))
	requireValue(t, s, "a", []byte("a"))
}

// Only the tags of the last Set count.
func TestInvalidate_TagsAreReplacedWithTheValue(t *testing.T) {
	s := newStoreWithTags(t, []string{"a", "b"})
	require.NoError(t, s.Set(ctx, "k", []byte("1"), withTags("a")))
	require.NoError(t, s.Set(ctx, "k", []byte("2"), withTags("b")))
	invalidate(t, s, "a")
	requireValue(t, s, "k", []byte("2"))
	require.NoError(t, s.Set(ctx, "k", []byte("3")))
	invalidate(t, s, "b")
	requireValue(t, s, "k", []byte("3"))
}

// A tag by default holds for each value that has no others.
func TestInvalidate_TagsOfTheStore(t *testing.T) {
	s := newStore(t, withTags("default"))
	require.NoError(t, s.Set(ctx, "k", []byte("v")))
	invalidate(t, s, "default")
	requireNone(t, s, "k")
}

// More values than the cache can hold have one tag. Whatever was dropped, none is found after
// the tag was invalidated.
func TestInvalidate_AfterEvictions(t *testing.T) {
	cache := newCache(t)
	s := ringgocache.New(cache.Namespace(""))
	const n = 100_000
	value := make([]byte, 1000)
	for i := range n {
		require.NoError(t, s.Set(ctx, strconv.Itoa(i), value, withTags("tag", strconv.Itoa(i))))
	}
	require.Positive(t, cache.Stats().EvictedEntries)
	found := func() (found int) {
		for i := range n {
			if _, err := s.Get(ctx, strconv.Itoa(i)); err == nil {
				found++
			}
		}
		return found
	}
	require.Greater(t, found(), 10_000)
	invalidate(t, s, "tag")
	require.Zero(t, found())
}

// Tags share versions, so a few more values go than have the tag.
func TestInvalidate_LeavesMostOthers(t *testing.T) {
	s := newStore(t)
	const n, others = 10_000, 300
	for i := range n {
		require.NoError(t, s.Set(ctx, strconv.Itoa(i), "v", withTags(fmt.Sprint("tag", i))))
	}
	for i := range others {
		invalidate(t, s, fmt.Sprint("other", i))
	}
	lost := 0
	for i := range n {
		if _, err := s.Get(ctx, strconv.Itoa(i)); err != nil {
			lost++
		}
	}
	require.Less(t, lost, 4*n*others>>16, "expected are %d", n*others>>16)
}

// modelValue is what a plain map has of a value.
type modelValue struct {
	value any
	tags  []string
}

// Random calls do what they would do with a plain map.
func TestModel(t *testing.T) {
	tags := []string{"", "a", "b", "c", "aa", "tag,with,commas"}
	keys := []string{"", "k", "k,1", "a", "long" + strconv.Itoa(1<<30)}
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s, model := newStoreWithTags(t, tags), map[string]modelValue{}
		pick := func() (some []string) {
			for range rnd.IntN(4) {
				some = append(some, tags[rnd.IntN(len(tags))])
			}
			return some
		}
		for i := range 20_000 {
			key := keys[rnd.IntN(len(keys))]
			switch p := rnd.IntN(1000); {
			case p < 300:
				v := modelValue{value: strconv.Itoa(i), tags: pick()}
				if rnd.IntN(2) == 0 {
					v.value = []byte(strconv.Itoa(i))
				}
				require.NoError(t, s.Set(ctx, key, v.value, withTags(v.tags...)))
				model[key] = v
			case p < 350:
				require.NoError(t, s.Delete(ctx, key))
				delete(model, key)
			case p < 450:
				gone := pick()
				invalidate(t, s, gone...)
				maps.DeleteFunc(model, func(_ string, v modelValue) bool {
					return slices.ContainsFunc(v.tags, func(tag string) bool {
						return slices.Contains(gone, tag)
					})
				})
			case p < 455:
				require.NoError(t, s.Clear(ctx))
				clear(model)
			default:
				if want, ok := model[key]; ok {
					requireValue(t, s, key, want.value)
				} else {
					requireNone(t, s, key)
				}
			}
		}
	}
}

// While values are set and read, one tag after the other is invalidated. What was set before
// that is not found afterwards.
func TestInvalidate_Concurrent(t *testing.T) {
	const keys, tags, rounds = 8, 3, 20_000
	s := newStore(t)
	var set, floor [keys]atomic.Uint64 // the last value that was set; below it all are invalid
	tagsOf := func(key int) []string {
		return []string{strconv.Itoa(key % tags), "all", "own" + strconv.Itoa(key)}
	}
	var writers, others sync.WaitGroup
	var done atomic.Bool
	var hits atomic.Int64
	for key := range keys {
		writers.Go(func() {
			for v := uint64(0); v < rounds || hits.Load() <= 100; v++ {
				value := binary.BigEndian.AppendUint64(nil, v+1)
				if err := s.Set(ctx, strconv.Itoa(key), value, withTags(tagsOf(key)...)); err != nil {
					t.Error(err)
				}
				set[key].Store(v + 1)
			}
		})
	}
	others.Go(func() {
		for i := 0; !done.Load(); i++ {
			runtime.Gosched() // on one processor, readers would run only after many rounds of this
			before := make([]uint64, keys)
			for key := range keys {
				before[key] = set[key].Load()
			}
			tag := []string{strconv.Itoa(i % tags), "all"}[i/tags%2]
			invalidate(t, s, tag)
			for key, v := range before {
				if slices.Contains(tagsOf(key), tag) {
					floor[key].Store(v)
				}
			}
		}
	})
	for range 2 {
		others.Go(func() {
			for i := 0; !done.Load(); i++ {
				key := i % keys
				atLeast := floor[key].Load()
				value, err := s.Get(ctx, strconv.Itoa(key))
				if err != nil {
					continue
				}
				hits.Add(1)
				if v := binary.BigEndian.Uint64(value.([]byte)); v <= atLeast {
					t.Errorf("found value %d of key %d, but %d was invalidated", v, key, atLeast)
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	others.Wait()
}

// FuzzGet reads any bytes that are in the cache: they are a miss, or a value that was in them.
func FuzzGet(f *testing.F) {
	cache := newCache(f)
	s := ringgocache.New(cache)
	f.Add([]byte("\x00value"))
	f.Add([]byte("\x01text"))
	f.Add([]byte("\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00value"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, rec []byte) {
		require.NoError(t, cache.Set([]byte("k"), rec))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := s.Get(ctx, "k")
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(rec)+16<<10))
		if err == nil {
			require.True(t, bytes.HasSuffix(rec, fmt.Append(nil, asText(v))))
		}
	})
}

// asText returns a value of either type as a string.
func asText(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return v.(string)
}
