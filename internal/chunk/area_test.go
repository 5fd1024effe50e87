package chunk

import (
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
	holes  map[uintptr]bool // that were given back, and not written to since
}

const (
	smallPage  = 4 << 10
	smallChunk = 2 * smallPage // soon settled: 512 of them are two blocks
)

func newFakeKernel() *fakeKernel {
	return &fakeKernel{
		there: map[uintptr]bool{}, wanted: map[uintptr]bool{}, holes: map[uintptr]bool{},
	}
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
	m.Discard = func(b []byte) {
		each(b, func(at uintptr) {
			delete(k.there, at)
			k.holes[at] = true
		})
	}
	m.Large = func(b []byte, want bool) {
		each(b, func(at uintptr) {
			if delete(k.wanted, at); want {
				k.wanted[at] = true
			}
		})
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
func (k *fakeKernel) touch(b []byte) {
	each(b, func(at uintptr) {
		k.there[at] = true
		delete(k.holes, at)
	})
}

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
		if hole := k.holes[at]; hole || off >= a.taken {
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
		require.Same(t, p.pageArea, p.areas[0])
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
	p.SetBound(bound)
	for range 10 {
		k.chunk(t, p)
	}
	require.Equal(t, full, k.gatherAll())
	k.require(t, p)
}

// Whatever is handed out and given back, and whenever the kernel gathers large pages, no memory
// comes back that was given back.
func TestArea_NoMemoryComesBack(t *testing.T) {
	for _, huge := range []HugePages{WhenFull, Never} {
		t.Run(fmt.Sprint(huge), func(t *testing.T) {
			gathered, away := 0, 0
			for seed := range uint64(20) {
				u := newPoolUser(t, huge, seed)
				for range 100 {
					u.step(t)
					if u.rnd.IntN(10) == 0 {
						gathered += u.k.gatherAll()
					}
					away += min(len(u.k.holes), 1)
					u.k.require(t, u.p)
				}
			}
			require.Equal(t, huge == WhenFull, gathered > 20, "blocks gathered: %d", gathered)
			require.Greater(t, away, 1000, "steps after which memory was away")
		})
	}
}

// poolUser takes chunks and pages of a pool at random, and gives them back.
type poolUser struct {
	k             *fakeKernel
	p             *Pool
	rnd           *rand.Rand
	chunks, pages []Ref
}

const mostOfUser = 16 << 20

// newPoolUser returns one that has all chunks.
func newPoolUser(t *testing.T, huge HugePages, seed uint64) *poolUser {
	t.Helper()
	u := &poolUser{k: newFakeKernel(), rnd: rand.New(rand.NewPCG(seed, uint64(huge)))}
	u.p = NewPool(u.k.memory(), mostOfUser, smallChunk, huge)
	u.take(t, mostOfUser/smallChunk)
	return u
}

// take takes n chunks, or as many as there are.
func (u *poolUser) take(t *testing.T, n int) {
	t.Helper()
	for range min(n, u.p.Spare()/smallChunk) {
		u.chunks = append(u.chunks, u.k.chunk(t, u.p))
	}
}

func (u *poolUser) step(t *testing.T) {
	t.Helper()
	switch u.rnd.IntN(6) {
	case 0, 1:
		u.take(t, u.rnd.IntN(480))
	case 2:
		from := u.rnd.IntN(len(u.chunks) + 1) // neighbours, or there would be holes all over
		to := min(len(u.chunks), from+u.rnd.IntN(320))
		for _, r := range u.chunks[from:to] {
			u.p.Put(r)
		}
		u.chunks = slices.Delete(u.chunks, from, to)
	case 3:
		u.p.SetBound(max(mostOfUser-u.rnd.IntN(mostOfUser/4), u.p.Used()))
		for u.p.Trim() {
		}
		u.p.SetBound(mostOfUser)
	case 4:
		if u.p.Spare() >= 8*smallChunk {
			rs, err := u.p.Pages(64)
			require.NoError(t, err)
			for _, r := range rs {
				u.k.touch(r.Bytes(0, uint32(u.p.pageSize)))
			}
			u.pages = append(u.pages, rs...)
		}
	case 5:
		n := u.rnd.IntN(len(u.pages) + 1)
		u.p.PutPages(u.pages[n:])
		u.pages = u.pages[:n]
	}
}
