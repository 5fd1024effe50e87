package chunk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// fakeKernel is memory that knows which of its small pages are there, and does what
// Linux does about large ones.
type fakeKernel struct {
	testMemory
	there  map[uintptr]bool // small pages with memory
	wanted map[uintptr]bool // that are to be part of a large page
	during func(b []byte)   // what others do while Collapse works
	refuse error            // of Collapse
}

const (
	smallPage  = 4 << 10
	smallChunk = 2 * smallPage // soon settled: 512 of them are two blocks
)

func newFakeKernel() *fakeKernel {
	return &fakeKernel{there: map[uintptr]bool{}, wanted: map[uintptr]bool{}}
}

// each calls fn with the small pages of b.
func each(b []byte, fn func(at uintptr)) {
	first := uintptr(unsafe.Pointer(&b[0]))
	for at := first &^ (smallPage - 1); at < first+uintptr(len(b)); at += smallPage {
		fn(at)
	}
}

func (k *fakeKernel) memory() Memory {
	m := k.testMemory.memory()
	m.Discard = func(b []byte) { each(b, func(at uintptr) { delete(k.there, at) }) }
	m.Large = func(b []byte, want bool) {
		each(b, func(at uintptr) {
			if delete(k.wanted, at); want {
				k.wanted[at] = true
			}
		})
	}
	m.Collapse = func(b []byte) error {
		if k.during != nil {
			k.during(b)
		}
		if k.refuse == nil {
			k.gather(uintptr(unsafe.Pointer(&b[0])))
		}
		return k.refuse
	}
	return m
}

// gather puts all small pages of a block on one large page.
func (k *fakeKernel) gather(block uintptr) {
	for at := block; at < block+BlockSize; at += smallPage {
		k.there[at] = true
	}
}

// touch writes to a chunk or page.
func (k *fakeKernel) touch(b []byte) { each(b, func(at uintptr) { k.there[at] = true }) }

// gatherAll does what the kernel's own thread does in the end: it gathers each block of
// which a page is there and large pages are wanted throughout. It returns how many.
func (k *fakeKernel) gatherAll() (blocks int) {
	pages := map[uintptr]int{}
	for at := range k.wanted {
		pages[at&^(BlockSize-1)]++
	}
	used := map[uintptr]bool{}
	for at := range k.there {
		used[at&^(BlockSize-1)] = true
	}
	for block, n := range pages {
		if n == BlockSize/smallPage && used[block] {
			k.gather(block)
			blocks++
		}
	}
	return blocks
}

// require fails if memory is there that nobody has or keeps for reuse.
func (k *fakeKernel) require(t *testing.T, p *Pool) {
	t.Helper()
	for at := range k.there {
		a := p.areas[p.areaAt(at)]
		off := int(at - a.start())
		if hole := a.hole[off/p.chunkSize]; hole || off >= a.taken {
			require.Fail(t, "memory that nobody has", "byte %d of %d taken, hole: %v", off, a.taken, hole)
		}
	}
}

func (k *fakeKernel) chunk(t *testing.T, p *Pool) Ref {
	t.Helper()
	r, err := p.Chunk()
	require.NoError(t, err)
	k.touch(r.Bytes(0, uint32(p.chunkSize)))
	return r
}

// collapse collapses all that may be, and returns the bytes.
func collapse(t *testing.T, p *Pool) (n int) {
	t.Helper()
	for at := uintptr(0); ; {
		next, more, err := p.Collapse(at)
		require.NoError(t, err)
		n += more
		if next == 0 {
			return n
		}
		require.Greater(t, next, at)
		at = next
	}
}

// wantedIn returns how many bytes of an area are wanted on large pages, from its
// start on, and fails if there are others behind them.
func (k *fakeKernel) wantedIn(t *testing.T, a *area) (n int) {
	t.Helper()
	gap := false
	each(a.mem, func(at uintptr) {
		if !k.wanted[at] {
			gap = true
		} else {
			require.False(t, gap)
			n += smallPage
		}
	})
	return n
}

// Large pages are asked for behind the filling: for nothing that the last chunk of each
// bucket may lie in.
func TestArea_LargePagesAreAskedForWhenMemoryIsSettled(t *testing.T) {
	const bound = 160 << 20
	k := newFakeKernel()
	p := NewPool(k.memory(), bound, MaxSize, WhenFull)
	for n := MaxSize; n <= bound; n += MaxSize {
		k.chunk(t, p)
		if n%(16<<20) != 0 {
			continue
		}
		want := 0
		for _, a := range p.areas {
			want += k.wantedIn(t, a)
		}
		require.InDelta(t, max(0, n-settledAfter*MaxSize), want, BlockSize,
			"when %d bytes were handed out", n)
	}
	k.gatherAll()
	k.require(t, p)
}

func TestArea_LargePagesNeverAndAtOnce(t *testing.T) {
	for huge, wanted := range map[HugePages]bool{Never: false, AtOnce: true} {
		k := newFakeKernel()
		p := NewPool(k.memory(), 80<<20, MaxSize, huge)
		for range 8 {
			for range 9 << 20 / MaxSize {
				k.chunk(t, p)
			}
			for _, a := range p.areas {
				if n := k.wantedIn(t, a); wanted {
					require.Len(t, a.mem, n, "%v", huge)
				} else {
					require.Zero(t, n, "%v", huge)
				}
			}
		}
	}
}

// Pages of indexes lie on large pages from the start, unless those are not wanted at all.
func TestArea_IndexPagesAreLargeAtOnce(t *testing.T) {
	for huge, wanted := range map[HugePages]bool{Never: false, WhenFull: true, AtOnce: true} {
		k := newFakeKernel()
		p := NewPool(k.memory(), pageAreasFrom, MaxSize, huge)
		_, err := p.Pages(1)
		require.NoError(t, err)
		require.True(t, p.areas[0].pages)
		require.Equal(t, wanted, k.wantedIn(t, p.areas[0]) > 0, "%v", huge)
	}
}

// What was given back to the system stays away: the kernel gathers no large page around
// it, until all holes of its area are in use again.
func TestArea_HolesAreNotFilled(t *testing.T) {
	const bound = 32 << 20
	k := newFakeKernel()
	p := NewPool(k.memory(), bound, smallChunk, WhenFull)
	var chunks []Ref
	for range bound / smallChunk {
		chunks = append(chunks, k.chunk(t, p))
	}
	full := k.gatherAll()
	require.GreaterOrEqual(t, full, bound/BlockSize-4)
	for _, r := range chunks[1000:1010] {
		p.Put(r)
	}
	p.SetBound(bound - 10*smallChunk)
	for p.Trim() {
	}
	require.Equal(t, 10, p.areas[0].holes)
	require.Zero(t, k.gatherAll())
	k.require(t, p)
	k.during = func(b []byte) {
		each(b, func(at uintptr) { require.True(t, k.there[at], "a block with a hole") })
	}
	whole := collapse(t, p)
	require.GreaterOrEqual(t, whole, bound-6*BlockSize, "blocks without holes")
	require.Less(t, whole, full*BlockSize)
	require.Zero(t, k.gatherAll(), "afterwards it is as before")
	k.require(t, p)
	p.SetBound(bound)
	for range 10 {
		k.chunk(t, p)
	}
	require.Equal(t, full, k.gatherAll())
	k.require(t, p)
}

// What is not settled is not collapsed, and so takes no memory before it is filled.
func TestArea_CollapseLeavesOutWhatIsNotSettled(t *testing.T) {
	k := newFakeKernel()
	p := NewPool(k.memory(), 1<<30, MaxSize, Never)
	for range settledAfter {
		k.chunk(t, p)
	}
	require.Zero(t, collapse(t, p))
	for range 10 << 20 / MaxSize {
		k.chunk(t, p)
	}
	n := collapse(t, p)
	require.GreaterOrEqual(t, n, 8<<20)
	require.LessOrEqual(t, n, 10<<20)
	require.Empty(t, k.wanted, "they are wanted no longer than it takes")
}

func TestArea_CollapseIsRefused(t *testing.T) {
	p := NewPool(new(testMemory).memory(), 1<<30, MaxSize, WhenFull)
	_, _, err := p.Collapse(0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	k := newFakeKernel()
	p = NewPool(k.memory(), 16<<20, smallChunk, WhenFull)
	for range 16 << 20 / smallChunk {
		k.chunk(t, p)
	}
	k.refuse = errRefused
	next, n, err := p.Collapse(0)
	require.ErrorIs(t, err, errRefused)
	require.Zero(t, n)
	require.NotZero(t, next, "there may be others")
}

// Whatever is handed out, given back and collapsed in turns or at the same time, by others
// and by the kernel, no memory comes back that was given back.
func TestArea_CollapseBesideOthers(t *testing.T) {
	for _, huge := range []HugePages{WhenFull, Never} {
		t.Run(fmt.Sprint(huge), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, uint64(huge)))
			const most = 16 << 20
			k := newFakeKernel()
			p := NewPool(k.memory(), most, smallChunk, huge)
			var chunks []Ref
			var pages []Ref
			var undone, collapsed int
			step := func() {
				switch rnd.IntN(6) {
				case 0, 1:
					for range rnd.IntN(480) {
						if p.Spare() >= smallChunk {
							chunks = append(chunks, k.chunk(t, p))
						}
					}
				case 2:
					from := rnd.IntN(len(chunks) + 1) // neighbours, or there would be holes all over
					to := min(len(chunks), from+rnd.IntN(320))
					for _, r := range chunks[from:to] {
						p.Put(r)
					}
					chunks = slices.Delete(chunks, from, to)
				case 3:
					bound := max(most-rnd.IntN(most/4), p.Used())
					p.SetBound(bound)
					for p.Trim() {
					}
					p.SetBound(most)
				case 4:
					if p.SpareForPages() >= 8*smallChunk {
						rs, err := p.Pages(64)
						require.NoError(t, err)
						for _, r := range rs {
							k.touch(r.Bytes(0, uint32(p.pageSize)))
						}
						pages = append(pages, rs...)
					}
				case 5:
					n := rnd.IntN(len(pages) + 1)
					p.PutPages(pages[n:])
					pages = pages[:n]
				}
			}
			k.during = func([]byte) {
				for range rnd.IntN(3) {
					step()
				}
			}
			// Which blocks can be collapsed depends on where the system put them, so what is to be
			// met is met sooner in one run and later in another.
			for i := 0; i < 2000 || i < 40000 && (collapsed <= 50 || undone <= 5); i++ {
				step()
				switch rnd.IntN(10) {
				case 0:
					k.gatherAll()
				case 1:
					at := uintptr(0)
					for range 10 {
						next, n, err := p.Collapse(at)
						require.NoError(t, err)
						if at = next; n > 0 {
							collapsed++
						} else if next != 0 {
							undone++
						}
					}
				}
				k.require(t, p)
			}
			require.Greater(t, collapsed, 50)
			require.Greater(t, undone, 5, "that met what was given back meanwhile")
		})
	}
}

// A pool that is closed while a block is collapsed has no memory afterwards.
func TestArea_CloseBesideCollapse(t *testing.T) {
	k := newFakeKernel()
	p := NewPool(k.memory(), 16<<20, smallChunk, AtOnce)
	for range 16 << 20 / smallChunk {
		k.chunk(t, p)
	}
	k.during = func([]byte) { p.Close() }
	_, n, err := p.Collapse(0)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, len(k.there), "small pages")
	require.Zero(t, collapse(t, p))
}
