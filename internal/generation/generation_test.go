package generation

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var seed = [2]uint64{1, 2}

// A generation is in use until it is forgotten, and is known to be forgotten ever after, also
// where the table has room for the ones in use alone.
func TestTable_WhatIsForgottenStaysForgotten(t *testing.T) {
	table := New(seed)
	require.False(t, table.InUse())
	live := map[uint64]*Usage{}
	var forgotten []uint64
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		g, u := table.Make()
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
	require.True(t, table.InUse())
	require.EqualValues(t, len(forgotten), table.Buried())
	for g, u := range live {
		got, gone := table.Of(g)
		require.Same(t, u, got)
		require.False(t, gone)
	}
	for _, g := range forgotten {
		u, gone := table.Of(g)
		require.Nil(t, u)
		require.True(t, gone)
	}
	require.LessOrEqual(t, len(*table.live.Load()), 256, "what was forgotten takes memory")
}

// Another process with the same secret knows what was forgotten; one with another secret does not,
// and takes over what it is told of.
func TestTable_SecretTellsGenerations(t *testing.T) {
	table, same, other := New(seed), New(seed), New([2]uint64{5, 6})
	g, _ := table.Make()
	_, gone := same.Of(g)
	require.True(t, gone)
	_, gone = other.Of(g)
	require.False(t, gone)
	require.False(t, other.IsOurs(g))

	u := other.Adopt(g, 4)
	require.Same(t, u, other.Adopt(g, 4))
	other.Forget(g)
	for range 1000 { // the table is made anew
		other.Forget(func() uint64 { g, _ := other.Make(); return g }())
	}
	_, gone = other.Of(g)
	require.True(t, gone)
	require.Nil(t, other.Adopt(g, 4), "it comes back")
	require.Nil(t, other.Adopt(0, 4))
}

// A forgotten generation is not adopted again after the table was rebuilt, whether it was drawn
// here or by another table with the same secret.
func TestTable_AdoptsNothingForgotten(t *testing.T) {
	table, same := New(seed), New(seed)
	drawn, _ := table.Make()
	adopted, _ := same.Make()
	require.NotNil(t, table.Adopt(adopted, 4))
	table.Forget(drawn)
	table.Forget(adopted)
	for range 1000 {
		g, _ := table.Make()
		table.Forget(g)
	}
	require.Nil(t, table.find(drawn), "the table was not rebuilt")
	for _, g := range []uint64{drawn, adopted} {
		_, gone := table.Of(g)
		require.True(t, gone)
		require.Nil(t, table.Adopt(g, 4))
		_, gone = table.Of(g)
		require.True(t, gone)
	}
	next, _ := same.Make()
	require.NotNil(t, table.Adopt(next, 4))
}

// No other key is taken for one of a namespace.
func TestTable_OtherKeysAreNobodys(t *testing.T) {
	table := New(seed)
	table.Make()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1_000_000 {
		u, gone := table.Of(rnd.Uint64())
		require.Nil(t, u)
		require.False(t, gone)
	}
	for _, k := range []string{"\x00\x00\x00\x00\x00\x00\x00\x00", "session:", "ringcach"} {
		u, gone := table.Of(binary.LittleEndian.Uint64([]byte(k)))
		require.Nil(t, u)
		require.False(t, gone)
	}
}

// The entries of a generation that was taken over count once, whatever is stored and removed
// before and after their bucket has been counted.
func TestUsage_CountsEachBucketOnce(t *testing.T) {
	table := New(seed)
	u := table.Adopt(7, 2)
	u.Add(0, 1, 100)
	require.Zero(t, u.Bytes.Load(), "before its bucket was counted")
	table.Count(func() {
		u.Counting(0, 3, 300)
		u.Counting(0, 3, 300)
		u.Add(0, -1, -100)
		u.Add(1, 1, 50)
		u.Counting(1, 1, 50)
	})
	require.EqualValues(t, 3, u.Entries.Load())
	require.EqualValues(t, 250, u.Bytes.Load())
	require.Nil(t, u.uncounted.Load())
	table.Count(func() { require.Fail(t, "all are counted") })
	table.Found()
	counted := false
	table.Count(func() { counted = true })
	require.True(t, counted)
}

// Lookups find what is there while others change the table.
func TestTable_LookupsBesideChanges(t *testing.T) {
	table := New(seed)
	kept, want := table.Make()
	dropped, _ := table.Make()
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
				if u, gone := table.Of(kept); u != want || gone {
					t.Error("the one in use was not found")
					return
				}
				if u, gone := table.Of(dropped); u != nil || !gone {
					t.Error("the forgotten one came back")
					return
				}
			}
		}()
	}
	for range 20_000 {
		g, _ := table.Make()
		table.Forget(g)
	}
	close(stop)
	wg.Wait()
}
