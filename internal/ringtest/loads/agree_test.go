package loads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// GetOrLoad and GetOrLoadBatch come to the same for every kind of key, in every view: value,
// error, whether it was loaded, counts, and whether an entry is there afterwards. To the batch
// an absent key is no error.
func TestLoader_BatchAgreesWithGetOrLoad(t *testing.T) {
	absent := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, ringcache.ErrAbsent
	}
	value := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return []byte("7"), 0, nil
	}
	failing := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, ringtest.ErrDown
	}
	broken := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return []byte("x"), 0, nil
	}
	for name, tt := range map[string]struct {
		before string // the entry; "-" for a negative one
		load   ringtest.LoadFunc
		want   error
		typed  bool // only to a view whose codec wants numbers
		hit    bool
	}{
		"hit":              {before: "1", load: failing, hit: true},
		"missing":          {load: value},
		"missing, absent":  {load: absent, want: ringcache.ErrAbsent},
		"missing, failing": {load: failing, want: ringtest.ErrDown},
		"negative":         {before: "-", load: value, want: ringcache.ErrAbsent},
		"undecodable":      {before: "x", load: value, typed: true},
		"undecodable, absent": {before: "x", load: absent, want: ringcache.ErrAbsent,
			typed: true},
		"undecodable, failing": {before: "x", load: failing, want: ringtest.ErrDown,
			typed: true},
		"undecodable, loaded as such": {before: "x", load: broken, want: ringcache.ErrDecode,
			typed: true},
		"missing, loaded as undecodable": {load: broken, want: ringcache.ErrDecode, typed: true},
	} {
		for view, ask := range agreeing {
			if tt.typed && view != "Typed" {
				continue
			}
			t.Run(name+" in "+view, func(t *testing.T) {
				type outcome struct {
					value  string
					loads  int
					counts [6]uint64 // of Stats
					spaced ringcache.Stats
					there  bool
				}
				var s ringcache.Stats
				outcomes := make([]outcome, 2)
				for i, inBatch := range []bool{false, true} {
					c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
					n := c.Namespace("n")
					k := []byte("key")
					in := n
					if view == "Cache" {
						in = c
					}
					switch tt.before {
					case "":
					case "-":
						_, err := in.GetOrLoad(t.Context(), nil, k, absent)
						require.ErrorIs(t, err, ringcache.ErrAbsent)
					default:
						require.NoError(t, in.Set(k, []byte(tt.before)))
					}
					o := &outcomes[i]
					v, hits, err := ask(t.Context(), c, inBatch,
						func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
							o.loads++
							require.Equal(t, "key", string(k))
							return tt.load(ctx, k)
						})
					switch {
					case inBatch && tt.want == ringcache.ErrAbsent:
						require.NoError(t, err)
						require.Empty(t, v)
					case inBatch && tt.want != nil:
						var failed *ringcache.BatchError
						require.ErrorAs(t, err, &failed)
						require.Len(t, failed.Failed, 1)
						require.Equal(t, 1, failed.Failed[0].Index)
						require.ErrorIs(t, failed.Failed[0].Err, tt.want)
						require.ErrorIs(t, err, tt.want)
					default:
						require.ErrorIs(t, err, tt.want)
					}
					if inBatch {
						require.Equal(t, tt.hit, hits == 1, "%d hits", hits)
					}
					s = c.Stats()
					o.counts = [...]uint64{s.GetCalls, s.Misses, s.Loads.NegativeHits,
						s.Loads.Started, s.Loads.Errors, s.Loads.Dropped}
					o.value, o.spaced, o.there = v, n.Stats(), in.Has(k)
				}
				require.Equal(t, outcomes[0], outcomes[1])
				require.Equal(t, tt.before == "-", s.Loads.NegativeHits == 1, "%d", s.Loads.NegativeHits)
				require.LessOrEqual(t, s.Loads.NegativeHits, s.Misses)
			})
		}
	}
}

// agreeing asks for a key alone, or as the second of a batch whose first is in the cache, for
// which there is one call of GetOrLoad too. hits are those of the batch but for the first.
var agreeing = map[string]func(
	ctx context.Context, c *ringcache.Cache, inBatch bool, load ringtest.LoadFunc,
) (v string, hits int, err error){
	"Cache": func(
		ctx context.Context, c *ringcache.Cache, inBatch bool, load ringtest.LoadFunc,
	) (string, int, error) {
		return agreeingBytes(ctx, inBatch, load, c.Set, c.GetOrLoad, c.GetOrLoadBatch)
	},
	"Namespace": func(
		ctx context.Context, c *ringcache.Cache, inBatch bool, load ringtest.LoadFunc,
	) (string, int, error) {
		n := c.Namespace("n")
		return agreeingBytes(ctx, inBatch, load, n.Set, n.GetOrLoad, n.GetOrLoadBatch)
	},
	"Typed": func(
		ctx context.Context, c *ringcache.Cache, inBatch bool, load ringtest.LoadFunc,
	) (string, int, error) {
		view := ringcache.NewTyped[string](c.Namespace("n"), codec.Func(
			func(dst []byte, s string) ([]byte, error) { return append(dst, s...), nil },
			func(data []byte) (string, error) {
				if string(data) == "x" {
					return "careless", errors.New("no number")
				}
				return string(data), nil
			}), ringcache.TypedOptions{})
		one := func(ctx context.Context, k string) (string, time.Duration, error) {
			v, ttl, err := load(ctx, []byte(k))
			return string(v), ttl, err
		}
		if err := view.Set("first", "1"); err != nil {
			return "", 0, err
		}
		if !inBatch {
			if _, err := view.GetOrLoad(ctx, "first", one); err != nil {
				return "", 0, err
			}
			v, err := view.GetOrLoad(ctx, "key", one)
			return v, 0, err
		}
		vals, found := []string{"", "before"}, make([]bool, 2)
		hits, err := view.GetOrLoadBatch(ctx, []string{"first", "key"}, vals, found,
			func(ctx context.Context, keys []string) ([]ringcache.Loaded[string], error) {
				v, _, err := one(ctx, keys[0])
				return []ringcache.Loaded[string]{{Value: v}}, err
			})
		if found[1] != (vals[1] != "") {
			err = fmt.Errorf("found %v, %q", found[1], vals[1])
		}
		return vals[1], hits - 1, err
	},
}

func agreeingBytes(
	ctx context.Context, inBatch bool, load ringtest.LoadFunc,
	set func(k, v []byte) error,
	get func(ctx context.Context, dst, k []byte, load ringtest.LoadFunc) ([]byte, error),
	getBatch func(ctx context.Context, dst []byte, keys, vals [][]byte, load ringtest.BatchLoadFunc) (
		[]byte, int, error),
) (v string, hits int, err error) {
	if err := set([]byte("first"), []byte("1")); err != nil {
		return "", 0, err
	}
	if !inBatch {
		if _, err := get(ctx, nil, []byte("first"), load); err != nil {
			return "", 0, err
		}
		out, err := get(ctx, nil, []byte("key"), load)
		return string(out), 0, err
	}
	vals := make([][]byte, 2)
	_, hits, err = getBatch(ctx, nil, keysOf("first key"), vals, ringtest.OfOne(load))
	return string(vals[1]), hits - 1, err
}

// An error of a batch lists all keys that have failed, in their order, each with its own cause.
func TestLoaderBatch_ErrorListsTheKeys(t *testing.T) {
	c := ringtest.LoaderCache(t)
	other := errors.New("another")
	held, release := heldBatch(func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
		return nil, other
	})
	first := askBatch(t.Context(), c, "b e", held)
	ringtest.AwaitWaiting(t, c, []byte("e"), 1)
	all := askBatch(t.Context(), c, "a b c d e a", func(_ context.Context, keys [][]byte) (
		[]ringtest.Loaded, error) {
		return nil, ringtest.ErrDown
	})
	ringtest.AwaitWaiting(t, c, []byte("e"), 2)
	release()
	<-first
	r := <-all
	var failed *ringcache.BatchError
	require.ErrorAs(t, r.err, &failed)
	require.Equal(t, []ringcache.KeyError{{Index: 0, Err: ringtest.ErrDown}, {Index: 1, Err: other},
		{Index: 2, Err: ringtest.ErrDown}, {Index: 3, Err: ringtest.ErrDown}, {Index: 4, Err: other},
		{Index: 5, Err: ringtest.ErrDown}}, failed.Failed)
	require.ErrorIs(t, r.err, ringtest.ErrDown)
	require.ErrorIs(t, r.err, other)
	require.EqualError(t, r.err, "ringcache: load batch: index 0: down (and 5 more)")
	mixed := loadBatch(c, t.Context(), "a b",
		func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
			return []ringtest.Loaded{{Err: ringcache.ErrAbsent}, {Value: []byte("value")}}, nil
		})
	require.Equal(t, batchReply{vals: "-, value"}, mixed, "absent is no error")
}

// One key of a batch may fail alone: the others are stored, and for the one that failed a value
// that has expired may stand in.
func TestLoaderBatch_ErrorOfOneKey(t *testing.T) {
	g, now := ringtest.Tiny(2, 512, 12), time.Duration(0)
	g.Elapsed, g.StaleIfError = func() time.Duration { return now }, time.Hour
	c, errOne := ringtest.MustCache(t, g), errors.New("one row is broken")
	load := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		all := make([]ringtest.Loaded, len(keys))
		for i, k := range keys {
			all[i] = ringtest.Loaded{Value: bytes.Clone(k), TTL: time.Minute}
			switch string(k) {
			case "bad", "stale":
				all[i].Err = errOne
			case "absent":
				all[i].Err = fmt.Errorf("no row: %w", ringcache.ErrAbsent)
			}
		}
		return all, nil
	}
	require.NoError(t, c.SetWithTTL([]byte("stale"), []byte("old"), time.Second))
	now = time.Minute
	r := loadBatch(c, t.Context(), "a bad absent stale b", load)
	require.Equal(t, "a, -, -, old, b", r.vals)
	var failed *ringcache.BatchError
	require.ErrorAs(t, r.err, &failed)
	require.Equal(t, []ringcache.KeyError{{Index: 1, Err: errOne}}, failed.Failed)
	require.True(t, c.Has([]byte("a")))
	require.False(t, c.Has([]byte("bad")))
	require.True(t, ringtest.IsNegative(c, []byte("absent")))
	s := c.Stats()
	require.Equal(t, []uint64{5, 2, 1}, []uint64{s.Loads.Started, s.Loads.Errors, s.Loads.StaleHits})

	view := ringcache.NewTyped[string](c, ringtest.Naturals, ringcache.TypedOptions{Prefix: "n"})
	vals, found := make([]int, 3), make([]bool, 3)
	_, err := view.GetOrLoadBatch(t.Context(), []string{"1", "minus", "2"}, vals, found,
		func(context.Context, []string) ([]ringcache.Loaded[int], error) {
			return []ringcache.Loaded[int]{{Value: 1}, {Value: -1}, {Value: 2}}, nil
		})
	require.ErrorIs(t, err, ringcache.ErrEncode)
	require.ErrorContains(t, err, "index 1")
	require.Equal(t, []bool{true, false, true}, found)
}

// listError is an error that cannot be compared: two of them with == panic.
type listError []string

func (e listError) Error() string { return fmt.Sprint([]string(e)) }

func TestBatchError_OfErrorsThatCannotBeCompared(t *testing.T) {
	c := ringtest.LoaderCache(t)
	r := loadBatch(c, t.Context(), "a b", func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
		return nil, listError{"name", "age"}
	})
	require.False(t, errors.Is(r.err, ringtest.ErrDown))
	var e listError
	require.ErrorAs(t, r.err, &e)
	require.Equal(t, listError{"name", "age"}, e)
}
