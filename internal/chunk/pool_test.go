package chunk

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// testMemory is memory on the Go heap that counts what is given back.
type testMemory struct {
	maps      [][]uint64
	discarded int
	refuse    bool
}

var errRefused = errors.New("refused by the test")

func (m *testMemory) memory() Memory {
	return Memory{
		Map: func(n int) ([]byte, error) {
			if m.refuse {
				return nil, errRefused
			}
			words := make([]uint64, n/8)
			m.maps = append(m.maps, words)
			return bytesOf(words), nil
		},
		Unmap:   func([]byte) error { return nil },
		Discard: func(b []byte) { m.discarded += len(b); clear(b) },
		Granule: 4096,
	}
}

// In a cache that is not small the pages of indexes lie in separate areas, and no
// two pieces that are handed out share a byte.
func TestPool_PagesLieInAreasOfTheirOwn(t *testing.T) {
	for bound, apart := range map[int]bool{pageAreasFrom: true, pageAreasFrom - 1: false} {
		var m testMemory
		p := NewPool(m.memory(), bound, MaxSize, Never)
		type piece struct{ from, to uintptr }
		var all []piece
		pageAreas := map[*area]bool{}
		forPages := func(r Ref) bool { return pageAreas[p.areas[p.areaAt(uintptr(r.Pointer()))]] }
		for i := range 512 {
			rs, err := p.Pages(1)
			require.NoError(t, err)
			at := uintptr(rs[0].Pointer())
			all = append(all, piece{at, at + uintptr(p.PageSize())})
			pageAreas[p.pageArea] = true
			require.Equal(t, apart, forPages(rs[0]), "page %d", i)
			for range 1 + i%5 { // beyond the end of a map
				r, err := p.Chunk()
				require.NoError(t, err)
				at := uintptr(r.Pointer())
				all = append(all, piece{at, at + uintptr(p.ChunkSize())})
				require.False(t, forPages(r), "chunk beside page %d", i)
			}
		}
		slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
		for i := range all[1:] {
			require.LessOrEqual(t, all[i].to, all[i+1].from, "two pieces share a byte")
		}
		require.GreaterOrEqual(t, len(p.areas), 2, "the end of an area was not seen")
	}
}

// Memory that cannot be had is an error, and harms nothing.
func TestPool_RefusedMemoryIsAnError(t *testing.T) {
	m := testMemory{refuse: true}
	p := NewPool(m.memory(), pageAreasFrom, MaxSize, Never)
	_, err := p.Pages(1)
	require.ErrorIs(t, err, errRefused)
	_, err = p.Chunk()
	require.ErrorIs(t, err, errRefused)
	require.Zero(t, p.Used())
	m.refuse = false
	_, err = p.Pages(1)
	require.NoError(t, err)
}

// The size of a map is right up to the largest bound of 32-bit platforms.
func TestPool_MapSize(t *testing.T) {
	for _, bound := range []int{32 << 20, 64 << 20, 1 << 30, math.MaxInt32} {
		n := mapSizeFor(bound, MaxSize)
		require.GreaterOrEqual(t, n, MaxSize, "bound %d", bound)
		require.LessOrEqual(t, n, 65<<20, "bound %d", bound)
	}
}

// A page never becomes a chunk: a reader may still raise a frequency there. Its
// memory goes back to the system when rings want more than the bound has room for.
func TestPool_PageIsNeverAChunk(t *testing.T) {
	var m testMemory
	p := NewPool(m.memory(), 16*MaxSize, MaxSize, Never)
	perChunk := MaxSize / p.PageSize()
	pages, err := p.Pages(4 * perChunk)
	require.NoError(t, err)
	was := map[Ref]bool{}
	for _, r := range pages {
		was[r] = true
	}
	p.PutPages(pages)
	require.Zero(t, p.Used())
	for range 16 {
		r, err := p.Chunk()
		require.NoError(t, err)
		require.False(t, was[r], "a chunk that was pages")
	}
	require.Equal(t, 4*MaxSize, m.discarded, "idle pages beside all the chunks that there may be")
	again, err := p.Pages(4 * perChunk)
	require.NoError(t, err)
	for _, r := range again {
		require.True(t, slices.Contains(pages, r), "idle pages serve again")
	}
}

// What rings gave back may be split into pages.
func TestPool_IdleChunkBecomesPages(t *testing.T) {
	var m testMemory
	p := NewPool(m.memory(), 16*MaxSize, MaxSize, Never)
	c, err := p.Chunk()
	require.NoError(t, err)
	p.Put(c)
	pages, err := p.Pages(1)
	require.NoError(t, err)
	require.Equal(t, c, pages[0])
}

// takeChunks takes n chunks.
func takeChunks(t *testing.T, p *Pool, n int) (chunks []Ref) {
	t.Helper()
	for range n {
		c, err := p.Chunk()
		require.NoError(t, err)
		chunks = append(chunks, c)
	}
	return chunks
}

// Trim brings what is idle down to the bound.
func TestPool_TrimGivesIdleMemoryBack(t *testing.T) {
	var m testMemory
	p := NewPool(m.memory(), 16*MaxSize, MaxSize, Never)
	chunks := takeChunks(t, p, 10)
	pages, err := p.Pages(2 * MaxSize / p.PageSize())
	require.NoError(t, err)
	for _, c := range chunks[2:] {
		p.Put(c)
	}
	p.PutPages(pages)
	p.SetBound(5 * MaxSize)
	for p.Trim() {
	}
	require.Equal(t, 12*MaxSize-5*MaxSize, m.discarded)
	require.Equal(t, 2*MaxSize, p.Used())
}

// Close gives the memory back at once, and keeps the addresses.
func TestPool_CloseDiscardsEveryMap(t *testing.T) {
	var m testMemory
	p := NewPool(m.memory(), 16*MaxSize, MaxSize, Never)
	c, err := p.Chunk()
	require.NoError(t, err)
	c.Bytes(0, MaxSize)[0] = 7
	p.Close()
	require.Equal(t, len(m.maps[0])*8, m.discarded)
	require.Zero(t, p.Used())
	require.Zero(t, c.Bytes(0, MaxSize)[0], "readable, and empty")
}

// Idle chunks and idle pages that have memory are never more than the bound has room
// for, whatever rings and indexes give back and take in turns.
func TestPool_PhysicalMemoryStaysWithinTheBound(t *testing.T) {
	const n = 100
	var m testMemory
	p := NewPool(m.memory(), n*MaxSize, MaxSize, Never)
	requireWithin := func() {
		t.Helper()
		require.LessOrEqual(t, p.heldLocked(), n*MaxSize)
		require.NoError(t, p.Validate())
	}
	pages, err := p.Pages(160) // as for tiny records
	require.NoError(t, err)
	chunks := takeChunks(t, p, 80)
	p.PutPages(pages) // Reset
	for _, c := range chunks {
		p.Put(c)
	}
	requireWithin()
	chunks = takeChunks(t, p, 99) // large records
	requireWithin()
	for _, c := range chunks[:19] {
		p.Put(c)
	}
	_, err = p.Pages(19 * 8)
	require.NoError(t, err)
	requireWithin()
}

// Several users that looked at Spare at the same time take more than the bound: what they give back
// goes to the system.
func TestPool_MoreThanTheBoundIsGivenBack(t *testing.T) {
	var m testMemory
	p := NewPool(m.memory(), 16*MaxSize, MaxSize, Never)
	chunks := takeChunks(t, p, 20)
	pages, err := p.Pages(8 * MaxSize / p.PageSize())
	require.NoError(t, err)
	for _, c := range chunks {
		p.Put(c)
		require.NoError(t, p.Validate())
	}
	p.PutPages(pages)
	require.NoError(t, p.Validate())
	require.Equal(t, 12*MaxSize, m.discarded)
	require.Zero(t, p.Used())
}

// A bound that is no whole number of chunks is a bound all the same.
func TestPool_TrimRoundsUp(t *testing.T) {
	var m testMemory
	p := NewPool(m.memory(), 8*MaxSize, MaxSize, Never)
	var last Ref
	for range 4 {
		var err error
		last, err = p.Chunk()
		require.NoError(t, err)
	}
	p.Put(last)
	p.SetBound(3*MaxSize + 10)
	for p.Trim() {
	}
	require.LessOrEqual(t, p.Used()+len(p.idle)*MaxSize, 3*MaxSize+10)
}

// A page is an eighth of a chunk, whatever the system's pages are.
func TestPool_PageSize(t *testing.T) {
	const kb = 1 << 10
	for _, c := range []struct{ chunk, granule, page int }{
		{2 * kb, 4 * kb, kb}, {4 * kb, 4 * kb, kb}, {16 * kb, 4 * kb, 2 * kb},
		{64 * kb, 4 * kb, 8 * kb}, {8 * kb, 16 * kb, kb}, {16 * kb, 16 * kb, 2 * kb},
		{64 * kb, 16 * kb, 8 * kb}, {64 * kb, 64 * kb, 8 * kb}, {64 * kb, 0, 8 * kb}, {64, 0, 64},
	} {
		p := NewPool(Memory{Granule: c.granule}, 1<<20, c.chunk, Never)
		require.Equal(t, c.page, p.PageSize(), "chunks of %d, system's pages of %d", c.chunk, c.granule)
		require.LessOrEqual(t, p.PageSize(), 8*len(zeros))
	}
}

// Pages that lie in a block of idle ones take the whole block from the bound.
func TestPool_PagesTakeNoMoreThanTheirSize(t *testing.T) {
	const size = 4 << 10
	var m testMemory
	p := NewPool(m.memory(), 100*size, size, Never)
	rnd := rand.New(rand.NewPCG(1, 2))
	var taken []Ref
	for range 1000 {
		n, used := 1+rnd.IntN(6), p.Used()
		pages, err := p.Pages(n)
		require.NoError(t, err)
		require.LessOrEqual(t, p.Used()-used, p.PagesSize(n))
		taken = append(taken, pages...)
		for len(taken) > 150 {
			i := rnd.IntN(len(taken))
			p.PutPages(taken[i : i+1])
			taken = append(taken[:i], taken[i+1:]...)
		}
	}
}
