package ringcache

import (
	"cmp"
	"slices"
	"testing"
)

// In a cache that is not small the pages of indexes lie in blocks, each at an
// address where a large page can begin, and no two pieces that are handed out
// share a byte. In a small one there are none.
func TestPages_Blocks(t *testing.T) {
	for _, c := range []struct {
		bound  int
		blocks bool
	}{{blocksFrom, true}, {blocksFrom - 1, false}} {
		p := newChunkPool(osMemory, c.bound, maxChunkSize)
		defer func() {
			if err := p.close(); err != nil {
				t.Error(err)
			}
		}()
		type piece struct{ from, to uintptr }
		var all []piece
		inBlocks := map[uintptr]int{}
		pages := 2 * blockSize / p.pageSize
		for i := range pages {
			r, err := p.page()
			if err != nil {
				t.Fatal(err)
			}
			at := uintptr(r.pointer())
			all = append(all, piece{at, at + uintptr(p.pageSize)})
			inBlocks[at/blockSize]++
			for range 1 + i%3 { // beyond the end of a map
				r, err := p.chunk()
				if err != nil {
					t.Fatal(err)
				}
				at := uintptr(r.pointer())
				all = append(all, piece{at, at + uintptr(p.chunkSize)})
			}
		}
		if got := len(inBlocks) <= 2; got != c.blocks {
			t.Errorf("bound %d: %d pages in %d places of the size of a block", c.bound, pages, len(inBlocks))
		}
		slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
		for i := range all[1:] {
			if all[i].to > all[i+1].from {
				t.Fatalf("bound %d: %x to %x is handed out, and %x too", c.bound, all[i].from, all[i].to, all[i+1].from)
			}
		}
		if len(p.maps) < 2 {
			t.Errorf("bound %d: one map: its end has not been seen", c.bound)
		}
	}
}

// A block that cannot be had is an error as any other, and harms nothing.
func TestPages_NoBlock(t *testing.T) {
	refuse := false
	mem := osMemory
	mem.mapBytes = func(n int) ([]byte, error) {
		if refuse {
			return nil, errRefused
		}
		return osMemory.mapBytes(n)
	}
	p := newChunkPool(mem, blocksFrom, maxChunkSize)
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}()
	refuse = true
	if _, err := p.page(); err == nil {
		t.Error("a page without memory")
	}
	refuse = false
	if _, err := p.page(); err != nil {
		t.Error(err)
	}
}
