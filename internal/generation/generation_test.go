package generation

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A generation is in use until it is forgotten, and forgotten ever after, also where the table has
// room for the ones in use alone.
func TestTable_WhatIsForgottenStaysForgotten(t *testing.T) {
	table := new(Table)
	require.False(t, table.InUse.Load())
	live := map[uint64]*Usage{}
	var forgotten []uint64
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		g := table.Make("n")
		require.NotContains(t, live, g)
		live[g] = table.Of(g)
		for g := range live {
			if len(live) > 20 || rnd.IntN(3) == 0 {
				table.Forget(g)
				delete(live, g)
				forgotten = append(forgotten, g)
			}
			break
		}
	}
	require.True(t, table.InUse.Load())
	require.EqualValues(t, len(forgotten), table.Forgotten.Load())
	for g, u := range live {
		require.Same(t, u, table.Of(g))
		require.False(t, table.Of(g).IsForgotten())
	}
	for _, g := range forgotten {
		require.True(t, table.Of(g).IsForgotten())
	}
	n := 0
	table.usages.Range(func(_, _ any) bool { n++; return true })
	require.LessOrEqual(t, n, 22, "what was forgotten takes memory")
}

// The name of a forgotten generation is known until its last entry has gone.
func TestTable_NamesWhatHasEntries(t *testing.T) {
	table := new(Table)
	g := table.Make("left")
	table.Count(g, 2, 100)
	table.Forget(g)
	turn := func() {
		for range 1000 {
			other := table.Make("other")
			table.Forget(other)
		}
	}
	turn()
	require.Equal(t, "left", table.Of(g).Name)
	require.True(t, table.Of(g).IsForgotten())
	table.Count(g, -2, -100)
	turn()
	require.Nil(t, table.Of(g))
	require.True(t, table.Of(g).IsForgotten())
	table.Count(g, -1, -1) // does nothing
}

// A Set that found its generation in use counts its entry when others have forgotten it, and it has
// left the table: it is named again until that entry has gone.
func TestTable_NamesWhatIsCountedLate(t *testing.T) {
	table := new(Table)
	g := table.Make("left")
	u := table.Of(g)
	table.Forget(g)
	require.Nil(t, table.Of(g))
	table.CountIn(u, g, 1, 100)
	table.CountIn(u, g, 1, 100)
	require.Equal(t, "left", table.Of(g).Name)
	require.True(t, table.Of(g).IsForgotten())
	table.Count(g, -1, -100)
	require.Same(t, u, table.Of(g))
	table.Count(g, -1, -100)
	require.Nil(t, table.Of(g))
}

// A generation that was found in a file is in use, and has one usage.
func TestTable_EntersWhatWasFound(t *testing.T) {
	table := new(Table)
	for g := range uint64(100) {
		require.Same(t, table.Enter(g+1), table.Enter(g+1))
		require.False(t, table.Of(g+1).IsForgotten())
	}
	require.True(t, table.Of(101).IsForgotten())
}

// No other key is taken for one of a namespace.
func TestTable_OtherKeysAreNobodys(t *testing.T) {
	table := new(Table)
	table.Make("n")
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		require.Nil(t, table.Of(rnd.Uint64()))
	}
	for _, k := range []string{"\x00\x00\x00\x00\x00\x00\x00\x00", "session:", "ringcach"} {
		require.Nil(t, table.Of(binary.LittleEndian.Uint64([]byte(k))))
	}
}

// Lookups find what is there while others change the table.
func TestTable_LookupsBesideChanges(t *testing.T) {
	table := new(Table)
	kept, dropped := table.Make("kept"), table.Make("dropped")
	want := table.Of(kept)
	table.Forget(dropped)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if table.Of(kept) != want || table.Of(kept).IsForgotten() {
					t.Error("the one in use was not found")
					return
				}
				if !table.Of(dropped).IsForgotten() {
					t.Error("the forgotten one came back")
					return
				}
			}
		}()
	}
	for range 20_000 {
		g := table.Make("n")
		table.Forget(g)
	}
	close(stop)
	wg.Wait()
}
