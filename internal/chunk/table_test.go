package chunk

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A new table has an entry 0, which is none.
func TestTable_BeginsWithNone(t *testing.T) {
	var tab Table
	tab.Init(&NoChunk)
	require.Zero(t, tab.Len())
	require.Equal(t, Ref{}, *tab.At(0))
}

// Who has seen a length finds at least so many entries, while the table grows and is
// emptied: the owner stores a longer array before the greater length. (Entries are
// written before the array is stored, so the detector has nothing to say.)
func TestTable_ReaderFindsAsManyEntriesAsItSaw(t *testing.T) {
	all := make([]byte, 8<<10)
	refs := make([]Ref, len(all))
	for i := range all {
		refs[i] = RefOf(all[i : i+1])
	}
	for range 20 {
		var tab Table
		tab.Init(&NoChunk)
		var length atomic.Uint32
		var stop atomic.Bool
		var readers sync.WaitGroup
		for range 2 {
			readers.Add(1)
			go func() {
				defer readers.Done()
				for !stop.Load() {
					n := length.Load()
					for i := uint32(0); i < n; i += 1 + n/8 {
						if *tab.At(i) != refs[i] {
							assert.Fail(t, "another entry", "entry %d of %d", i, n)
							return
						}
					}
					if n > 0 && *tab.At(n - 1) != refs[n-1] {
						assert.Fail(t, "another entry", "the last of %d", n)
						return
					}
				}
			}()
		}
		for n := 1; n <= len(refs); n += 1 + n/16 {
			tab.Replace(append([]Ref(nil), refs[:n]...))
			length.Store(uint32(n))
		}
		stop.Store(true)
		readers.Wait()
		tab.Fill(NoChunk)
		require.Equal(t, Ref{}, *tab.At(uint32(tab.Len() - 1)))
	}
}
