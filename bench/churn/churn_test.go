package churn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/bench/store"
)

// fake is a store in a map, with the faults that its fields ask for.
type fake struct {
	m         map[string][]byte
	gets      int
	missEvery int // Gets; 0: none
	sets      int
	dropEvery int  // Sets; 0: none
	most      int  // bytes of a value; more are refused; 0: any
	keepsOld  bool // a Set changes nothing that is there
	keepsDead bool // a Del does nothing
}

func (f *fake) Set(k, v []byte) error {
	f.sets++
	switch _, there := f.m[string(k)]; {
	case f.most > 0 && len(v) > f.most:
		return errors.New("too large")
	case there && f.keepsOld:
	case f.dropEvery > 0 && f.sets%f.dropEvery == 0:
		delete(f.m, string(k))
	default:
		f.m[string(k)] = slices.Clone(v)
	}
	return nil
}

func (f *fake) Get(dst, k []byte) ([]byte, bool) {
	f.gets++
	v, ok := f.m[string(k)]
	if f.missEvery > 0 && f.gets%f.missEvery == 0 {
		return dst, false
	}
	return append(dst, v...), ok
}

func (f *fake) Del(k []byte) {
	if !f.keepsDead {
		delete(f.m, string(k))
	}
}

func (f *fake) Close() error { return nil }

// rich has what only some stores have.
type rich struct{ *fake }

func (f rich) Update(k []byte, fn func([]byte, bool) ([]byte, bool)) error {
	old, ok := f.m[string(k)]
	v, _ := fn(old, ok)
	return f.Set(k, v)
}

func (f rich) Space(name string) store.Space { return fakeSpace{f.fake, name} }

func (f rich) Moves() store.Moves {
	return store.Moves{Evicted: 3, Moved: uint64(f.sets), Dead: 1 << 20}
}

// fakeSpace has keys that begin with its name.
type fakeSpace struct {
	f    *fake
	name string
}

func (s fakeSpace) Set(k, v []byte) error { return s.f.Set(append([]byte(s.name), k...), v) }

func (s fakeSpace) Get(dst, k []byte) ([]byte, bool) {
	return s.f.Get(dst, append([]byte(s.name), k...))
}

func (s fakeSpace) Invalidate() error {
	for k := range s.f.m {
		if k[:len(s.name)] == s.name {
			delete(s.f.m, k)
		}
	}
	return nil
}

// tiny is a size of the load that takes milliseconds.
func tiny(l *Load) Size {
	return Size{MB: 2, Mean: 400, Live: l.live, Turns: 2}
}

func measureOn(l *Load, s store.Store) (Metrics, error) {
	return l.measure(tiny(l),
		store.Info{New: func(store.Config) (store.Store, error) { return s, nil }})
}

// find returns the first load whose name begins with kind.
func find(t *testing.T, kind string) *Load {
	t.Helper()
	for _, l := range Loads {
		if strings.HasPrefix(l.Name, kind+" ") {
			return l
		}
	}
	t.Fatalf("no load %s", kind)
	return nil
}

// eachLoad runs every load on stores that are made with and without namespaces and Update.
func eachLoad(t *testing.T, newFake func() *fake, fn func(t *testing.T, l *Load, m Metrics)) {
	for _, l := range Loads {
		if _, err := payload.New(cmp.Or(l.payload, "random")); err != nil {
			t.Log(err) // a machine with few files
			continue
		}
		for _, isRich := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/rich=%v", l.Name, isRich), func(t *testing.T) {
				f := newFake()
				f.m = map[string][]byte{}
				var s store.Store = f
				if isRich {
					s = rich{f}
				}
				m, err := measureOn(l, s)
				require.NoError(t, err)
				fn(t, l, m)
			})
		}
	}
}

func TestNothingIsLostByAStoreThatLosesNothing(t *testing.T) {
	eachLoad(t, func() *fake { return new(fake) }, func(t *testing.T, l *Load, m Metrics) {
		for _, all := range []string{Found, Untouched, FoundOld, FoundNew} {
			if share, ok := m[all]; ok {
				require.Equal(t, 1.0, share, all)
			}
		}
		for _, none := range []string{Parts, Refused} {
			require.Zero(t, m[none], none)
		}
		if hits, ok := m[Hits]; ok {
			require.Equal(t, 100.0, hits)
		}
		require.Positive(t, m[NsWrite])
		require.InEpsilon(t, tiny(l).Live, m[Live], 0.06, "the live share is what was asked for")
	})
}

func TestAKnownLossIsShown(t *testing.T) {
	quarter := func() *fake { return &fake{missEvery: 4} }
	eachLoad(t, quarter, func(t *testing.T, l *Load, m Metrics) {
		if strings.HasPrefix(l.Name, "append") {
			return // the Get of an append misses too: see the next test
		}
		for _, part := range []string{Found, Untouched, FoundOld, FoundNew} {
			if share, ok := m[part]; ok {
				require.InDelta(t, 0.75, share, 0.02, part)
			}
		}
		if hits, ok := m[Hits]; ok {
			require.InDelta(t, 75, hits, 0.5)
		}
	})
}

// An append to an entry that was lost leaves a value with its beginning missing.
func TestLostPartsAreShown(t *testing.T) {
	l := find(t, "append")
	for name, isRich := range map[string]bool{"Get and Set": false, "Update": true} {
		f := &fake{m: map[string][]byte{}, dropEvery: 50}
		var s store.Store = f
		if isRich {
			s = rich{f}
		}
		m, err := measureOn(l, s)
		require.NoError(t, err, name)
		require.Greater(t, m[Parts], 0.02, name)
		require.Less(t, m[Found]+m[Parts], 1.0, name)
		require.Greater(t, m[Found], 0.5, name)
	}
}

func TestWrongValuesAreErrors(t *testing.T) {
	for _, name := range []string{"churn", "churn-zipf", "append"} {
		_, err := measureOn(find(t, name), &fake{m: map[string][]byte{}, keepsOld: true})
		require.ErrorContains(t, err, "not its last one", name)
	}
	for _, name := range []string{"churn", "delete-half"} {
		_, err := measureOn(find(t, name), &fake{m: map[string][]byte{}, keepsDead: true})
		require.ErrorContains(t, err, "was deleted", name)
	}
}

// A refused write leaves no old value behind, and its key counts as lost.
func TestRefusedWritesAreLosses(t *testing.T) {
	l := find(t, "churn")
	m, err := measureOn(l, &fake{m: map[string][]byte{}, most: 500})
	require.NoError(t, err)
	require.Positive(t, m[Refused])
	require.InDelta(t, 0.75, m[Found], 0.05, "a quarter of the lengths from 200 to 600 is above 500")
}

func TestMovesAreOfTheTimedPart(t *testing.T) {
	l := find(t, "churn")
	f := &fake{m: map[string][]byte{}}
	m, err := measureOn(l, rich{f})
	require.NoError(t, err)
	c := tiny(l)
	require.Equal(t, 0.5, m[Dead], "1 MB of 2 MB")
	require.Equal(t, 3.0, m[Evicted])
	require.InEpsilon(t, 1/float64(KeyBytes+c.Mean), m[Moved], 0.05, "it says 1 byte for each Set")
}

func TestLongerValuesBeginWithShorterOnes(t *testing.T) {
	for _, kind := range append([]string{""}, payload.Kinds...) {
		v, err := newValues(1000, kind)
		if err != nil {
			t.Log(err) // a machine with few files
			continue
		}
		long := make([]byte, 1000)
		v.fill(long, 7, 3)
		for _, size := range []int{8, 9, 100, 500, 999} {
			short := make([]byte, size)
			v.fill(short, 7, 3)
			require.Equal(t, long[:size], short, kind)
			whole, part := v.compare(short, 7, 3, size)
			require.True(t, whole && !part, kind)
			if size > headBytes {
				whole, part = v.compare(short[headBytes:], 7, 3, size)
				require.True(t, !whole && part, kind)
			}
			whole, part = v.compare(short, 7, 4, size)
			require.False(t, whole || part, kind)
		}
	}
}

// Every store takes part in every load that it fits, and finds some of what it should.
func TestRunOnEveryStore(t *testing.T) {
	for _, info := range store.Writes {
		for _, name := range []string{"churn", "churn-zipf", "append", "invalidate"} {
			l := find(t, name)
			m, err := l.measure(Size{MB: 32, Mean: 4000, Live: l.live, Turns: 1}, info)
			require.NoError(t, err)
			require.Greater(t, m[Found], 0.05, "%s on %s", name, info.Name)
			require.Positive(t, m[NsWrite])
			_, counts := m[Evicted]
			require.Equal(t, info.Module == "github.com/ringcache/ringcache", counts)
		}
	}
}

func TestRun(t *testing.T) {
	m, err := Run("delete-half 0.72", "ringcache", true)
	require.NoError(t, err)
	require.Greater(t, m[FoundNew], 0.05)
	for _, names := range [][2]string{{"delete-half", "ringcache"}, {"delete-half 0.72", "nothing"}} {
		_, err := Run(names[0], names[1], true)
		require.Error(t, err, names)
	}
}

func TestSizes(t *testing.T) {
	require.Equal(t, Size{MB: 64, Mean: 400, Live: 0.3, Turns: 6}, find(t, "churn").size(false))
	require.Equal(t, Size{MB: 32, Mean: 400, Live: 0.3, Turns: 1}, find(t, "churn").size(true))
	require.Equal(t, 32<<10, find(t, "churn-large").size(false).Mean)
}
