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

// bind binds the value of a text.
func (t *Table[V]) bind(keyHash uint64, id EntryID, text string) {
	t.Bind(t.entry(text), keyHash, id, []byte(text))
}

// entry returns the remembered value of a text, or nil.
func (t *Table[V]) entry(text string) *Entry[V] {
	h := t.Hash([]byte(text))
	return find(t.set(h), uint32(h), []byte(text))
}

func TestPlace_RecallsWhatWasBoundLast(t *testing.T) {
	table := newTexts(t, 100, "a", "b")
	const keyHash = 1 << 63
	e, _ := table.Recall(keyHash)
	require.Nil(t, e)
	require.True(t, table.Binds(table.entry("a"), keyHash), "the place is empty")
	for i, text := range []string{"a", "b", "a"} {
		want := EntryID{uint64(i + 1), 2, 3}
		table.bind(keyHash, want, text)
		e, id := table.Recall(keyHash)
		require.NotNil(t, e)
		require.Equal(t, text, table.Hit(e))
		require.Equal(t, want, id)
	}
	table.Bind(table.entry("a"), keyHash, EntryID{9, 9, 9}, []byte("another value"))
	_, id := table.Recall(keyHash)
	require.Equal(t, EntryID{3, 2, 3}, id)
	e, _ = table.Recall(0)
	require.Nil(t, e)
	e, _ = table.Recall(keyHash + 1)
	require.Nil(t, e, "another key of the place")
}

// A value or a place that is taken is given to others now and then.
func TestPlace_TakenPlacesAreSeldomBound(t *testing.T) {
	table := newTexts(t, 100, "a", "b", "c")
	table.bind(0, EntryID{1, 1, 1}, "a")
	require.True(t, table.Binds(table.entry("b"), 1), "a pair has room for two")
	table.bind(1, EntryID{2, 1, 1}, "b")
	for of, keyHash := range map[string]uint64{"a": 1 << 63, "c": 2} {
		binds := 0
		for range 1000 {
			if table.Binds(table.entry(of), keyHash) {
				binds++
			}
		}
		require.InDelta(t, 1000/rebindOneIn, binds, 100)
	}
	for keyHash, text := range []string{"a", "b"} {
		e, id := table.Recall(uint64(keyHash))
		require.Equal(t, text, e.value)
		require.Equal(t, EntryID{uint64(keyHash + 1), 1, 1}, id)
	}
	table.bind(1<<63, EntryID{1, 1, 1}, "a")
	e, _ := table.Recall(0)
	require.Nil(t, e, "a value has one place")
}

// A value that has left the table is not recalled, nor is the one that has its slot.
func TestPlace_ValuesThatHaveGoneAreNotRecalled(t *testing.T) {
	table := newTexts(t, 1, "a")
	table.bind(0, EntryID{1, 1, 1}, "a")
	old := table.entry("a")
	for n := byte('b'); table.entry("a") != nil; n++ {
		for range 3 {
			_, _, err := table.Decode([]byte{n})
			require.NoError(t, err)
		}
	}
	e, _ := table.Recall(0)
	require.Nil(t, e)
	table.Bind(old, 0, EntryID{1, 1, 1}, []byte("a"))
	e, _ = table.Recall(0)
	require.Nil(t, e)
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
	for n := 0; n < 50_000 || recalled.Load() < 10_000; n++ {
		text := []string{"a", "b"}[n%2]
		table.bind(0, ids[text], text)
	}
	stop.Store(true)
	wg.Wait()
}

// A key without a place in a full pair takes that of any of the two others.
func TestPlace_FullPairGivesUpAny(t *testing.T) {
	texts := []string{"a", "b", "c"}
	lost := [3]int{}
	for range 100 {
		table := newTexts(t, 100, texts...)
		for keyHash, text := range texts {
			table.bind(uint64(keyHash), EntryID{1, 1, 1}, text)
		}
		for keyHash := range texts {
			if e, _ := table.Recall(uint64(keyHash)); e == nil {
				lost[keyHash]++
			}
		}
	}
	require.Equal(t, 100, lost[0]+lost[1])
	require.Positive(t, lost[0])
	require.Positive(t, lost[1])
	require.Zero(t, lost[2])
}
