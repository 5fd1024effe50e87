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
		g, u := table.Make("n")
		require.NotContains(t, live, g)
		live[g] = u
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
		require.False(t, table.IsForgotten(g))
	}
	for _, g := range forgotten {
		require.True(t, table.IsForgotten(g))
	}
	n := 0
	table.usages.Range(func(_, _ any) bool { n++; return true })
	require.LessOrEqual(t, n, 22, "what was forgotten takes memory")
}

// The name of a forgotten generation is known until its last entry has gone.
func TestTable_NamesWhatHasEntries(t *testing.T) {
	table := new(Table)
	g, _ := table.Make("left")
	table.Count(g, 2, 100)
	table.Forget(g)
	turn := func() {
		for range 1000 {
			other, _ := table.Make("other")
			table.Forget(other)
		}
	}
	turn()
	require.Equal(t, "left", table.Of(g).Name)
	require.True(t, table.IsForgotten(g))
	table.Count(g, -2, -100)
	turn()
	require.Nil(t, table.Of(g))
	require.True(t, table.IsForgotten(g))
	table.Count(g, -1, -1) // does nothing
}

// A Set that found its generation in use counts its entry when others have forgotten it, and it has
// left the table: it is named again until that entry has gone.
func TestTable_NamesWhatIsCountedLate(t *testing.T) {
	table := new(Table)
	g, u := table.Make("left")
	table.Forget(g)
	require.Nil(t, table.Of(g))
	table.CountIn(u, g, 1, 100)
	table.CountIn(u, g, 1, 100)
	require.Equal(t, "left", table.Of(g).Name)
	require.True(t, table.IsForgotten(g))
	table.Count(g, -1, -100)
	require.Same(t, u, table.Of(g))
	table.Count(g, -1, -100)
	require.Nil(t, table.Of(g))
}

// What was found in a file is in use if it is kept.
func TestTable_KeepsWhatIsNamed(t *testing.T) {
	table := new(Table)
	for g := range uint64(100) {
		require.Same(t, table.Enter(g+1), table.Enter(g+1))
	}
	table.Keep(func(g uint64) bool { return g%2 == 0 })
	require.EqualValues(t, 50, table.Forgotten.Load())
	for g := range uint64(100) {
		require.Equal(t, (g+1)%2 != 0, table.IsForgotten(g+1))
	}
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
	kept, want := table.Make("kept")
	dropped, _ := table.Make("dropped")
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
				if table.Of(kept) != want || table.IsForgotten(kept) {
					t.Error("the one in use was not found")
					return
				}
				if !table.IsForgotten(dropped) {
					t.Error("the forgotten one came back")
					return
				}
			}
		}()
	}
	for range 20_000 {
		g, _ := table.Make("n")
		table.Forget(g)
	}
	close(stop)
	wg.Wait()
}
