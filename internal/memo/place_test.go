package memo

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newTexts returns a table of strings that remembers the given ones.
func newTexts(t *testing.T, entries int, texts ...string) *Table[string] {
	t.Helper()
	table := New(func(data []byte) (string, error) { return string(data), nil }, entries, 1<<20)
	for _, text := range texts {
		_, _, err := table.Decode([]byte(text))
		require.NoError(t, err)
	}
	return table
}

func TestPlace_RecallsWhatWasBoundLast(t *testing.T) {
	table := newTexts(t, 100, "a", "b")
	const keyHash = 1 << 63
	e, _ := table.Recall(keyHash)
	require.Nil(t, e)
	require.True(t, table.Binds(keyHash), "the place is empty")
	for i, text := range []string{"a", "b", "a"} {
		want := EntryID{uint64(i + 1), 2, 3}
		table.Bind(keyHash, want, []byte(text))
		e, id := table.Recall(keyHash)
		require.NotNil(t, e)
		require.Equal(t, text, table.Hit(e))
		require.Equal(t, want, id)
	}
	table.Bind(keyHash, EntryID{9, 9, 9}, []byte("not remembered"))
	_, id := table.Recall(keyHash)
	require.Equal(t, EntryID{3, 2, 3}, id)
	e, _ = table.Recall(0)
	require.Nil(t, e)
}

// Keys whose hashes begin alike share a group of places.
func TestPlace_AGroupHasRoomForSeveralKeys(t *testing.T) {
	table := newTexts(t, 100, "a", "b", "c", "d", "e")
	texts := []string{"a", "b", "c", "d"}
	require.Len(t, texts, groupWays)
	for i, text := range texts {
		tries := 0
		for !table.Binds(uint64(i)) {
			tries++
			require.Less(t, tries, 1000, "a place is free")
		}
		table.Bind(uint64(i), EntryID{uint64(i), 1, 1}, []byte(text))
	}
	for i, text := range texts {
		e, id := table.Recall(uint64(i))
		require.NotNil(t, e)
		require.Equal(t, text, e.value)
		require.Equal(t, EntryID{uint64(i), 1, 1}, id)
	}
	const another = groupWays
	e, _ := table.Recall(another)
	require.Nil(t, e)
	table.Bind(another, EntryID{another, 1, 1}, []byte("e"))
	e, _ = table.Recall(another)
	require.Equal(t, "e", e.value)
	kept := 0
	for i, text := range texts {
		if e, _ := table.Recall(uint64(i)); e != nil {
			require.Equal(t, text, e.value)
			kept++
		}
	}
	require.Equal(t, groupWays-1, kept)
}

// A place that is taken is given to others now and then: that of the key itself, and where the
// group has no other.
func TestPlace_TakenPlacesAreSeldomBound(t *testing.T) {
	table := newTexts(t, 100, "a")
	for i := range uint64(groupWays) {
		table.Bind(i, EntryID{i, 1, 1}, []byte("a"))
	}
	for _, keyHash := range []uint64{0, groupWays} {
		binds := 0
		for range 1000 {
			if table.Binds(keyHash) {
				binds++
			}
		}
		require.InDelta(t, 1000/rebindOneIn, binds, 100)
	}
}

// A value that has left the table is not recalled, nor is the one that has its slot.
func TestPlace_ValuesThatHaveGoneAreNotRecalled(t *testing.T) {
	table := newTexts(t, 1, "a")
	table.Bind(0, EntryID{1, 1, 1}, []byte("a"))
	for n := byte('b'); table.holds("a"); n++ {
		for range 3 {
			_, _, err := table.Decode([]byte{n})
			require.NoError(t, err)
		}
	}
	e, _ := table.Recall(0)
	require.Nil(t, e)
	require.True(t, table.Binds(0))
}

func (t *Table[V]) holds(text string) bool {
	h := t.hash([]byte(text))
	e, _ := t.set(h).find(uint32(h), []byte(text))
	return e != nil
}

// Readers never see the entry of one binding with the value of another.
func TestPlace_BindingsAreWhole(t *testing.T) {
	table := newTexts(t, 100, "a", "b")
	ids := map[string]EntryID{"a": {1, 10, 100}, "b": {2, 20, 200}}
	var stop atomic.Bool
	var recalled atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() {
				e, id := table.Recall(0)
				if e == nil {
					continue
				}
				recalled.Add(1)
				if !assert.Equal(t, ids[e.value], id) {
					return
				}
			}
		}()
	}
	for n := 0; n < 50_000 || recalled.Load() < 10_000 && n < 10_000_000; n++ {
		text := []string{"a", "b"}[n%2]
		table.Bind(0, ids[text], []byte(text))
	}
	stop.Store(true)
	wg.Wait()
	require.GreaterOrEqual(t, recalled.Load(), int64(10_000))
}
