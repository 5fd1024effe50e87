package chunk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// scarce is memory of which only so many bytes are to be had, in all.
type scarce struct {
	testMemory
	left  int
	asked []int
	held  map[*byte]int
}

func (m *scarce) memory() Memory {
	mem := m.testMemory.memory()
	give := mem.Map
	m.held = map[*byte]int{}
	mem.Map = func(n int) ([]byte, error) {
		m.asked = append(m.asked, n)
		if n > m.left {
			return nil, errRefused
		}
		m.left -= n
		b, err := give(n)
		m.held[&b[0]] = n
		return b, err
	}
	mem.Unmap = func(b []byte) error {
		m.left += m.held[&b[0]]
		return nil
	}
	return mem
}

// takeAll takes chunks until there are no more within the bound in force.
func takeAll(t *testing.T, p *Pool) (all []Ref) {
	t.Helper()
	for p.Spare() >= p.ChunkSize() {
		r, err := p.Chunk()
		if err != nil {
			require.ErrorIs(t, err, errRefused)
			require.Zero(t, p.Spare(), "the bound after a refusal")
			break
		}
		all = append(all, r)
	}
	return all
}

// Where a large area is refused, smaller ones serve: nearly all that there is.
func TestGrow_SmallerAreas(t *testing.T) {
	m := scarce{left: 50 << 20}
	p := NewPool(m.memory(), 1<<30, MaxSize, Never)
	takeAll(t, p)
	require.LessOrEqual(t, m.left, leastArea)
	require.Equal(t, 50<<20-m.left, p.Used())
	require.Equal(t, p.Used(), p.Bound())
	require.True(t, p.Limited())
	require.ErrorIs(t, p.Refusal(), errRefused)
	require.Less(t, len(m.asked), 25)
}

// A file is asked for smaller areas too, while index pages come from elsewhere.
func TestGrow_SmallerAreasOfAFile(t *testing.T) {
	m, file := scarce{left: 1 << 30}, scarce{left: 10 << 20}
	mem := m.memory()
	mem.Rings = &RingMemory{Map: func(n int) ([]byte, error) { return file.memory().Map(n) }}
	p := NewPool(mem, 1<<30, MaxSize, Never)
	takeAll(t, p)
	require.LessOrEqual(t, file.left, leastArea)
	require.Empty(t, m.asked)
	_, err := p.Pages(100)
	require.NoError(t, err)
	m.left = 0
	bound := p.Bound()
	for err == nil {
		_, err = p.Pages(100)
	}
	require.ErrorIs(t, err, errRefused)
	require.Equal(t, bound, p.Bound(), "pages say nothing about a file")
}

// The pool asks again now and then, less often the more often it was in vain, until it has
// what it may have.
func TestGrow_AsksAgain(t *testing.T) {
	const got = 16 << 20
	m := scarce{left: got}
	p := NewPool(m.memory(), 64<<20, MaxSize, Never)
	takeAll(t, p)
	tries := func(turns int) int {
		from := len(m.asked)
		for range turns * p.Used() / MaxSize {
			p.Stored(MaxSize, 0)
			_, err := p.Chunk()
			require.Error(t, err)
		}
		return len(m.asked) - from
	}
	require.LessOrEqual(t, tries(2), 8)
	require.LessOrEqual(t, tries(8), 16, "twice a turn, as what is refused counts as stored")
	m.left = 1 << 30
	for range 400 {
		p.Stored(MaxSize, 0)
		takeAll(t, p)
	}
	require.False(t, p.Limited())
	require.Equal(t, 64<<20, p.Used())
	require.NoError(t, p.Refusal())
	require.Less(t, len(m.areas()), 20)
}

// areas returns the sizes of what was given.
func (m *scarce) areas() (sizes []int) {
	for _, n := range m.held {
		sizes = append(sizes, n)
	}
	return sizes
}

// A pool that gets nothing asks for each chunk.
func TestGrow_FromNothing(t *testing.T) {
	m := scarce{}
	p := NewPool(m.memory(), 64<<20, MaxSize, Never)
	for range 3 {
		_, err := p.Chunk()
		require.ErrorIs(t, err, errRefused)
		require.Zero(t, p.Bound())
	}
	m.left = 1 << 30
	_, err := p.Chunk()
	require.NoError(t, err)
}

// Whoever watches is told of each change of the bound in force, and a bound that is set
// does not bring back what was refused.
func TestGrow_BoundInForce(t *testing.T) {
	m := scarce{left: 8 << 20}
	p := NewPool(m.memory(), 64<<20, MaxSize, Never)
	told := 0
	p.OnBound(func() { told++ })
	all := takeAll(t, p)
	require.Equal(t, 1, told)
	bound := p.Bound()
	p.Put(all[0])
	require.Equal(t, MaxSize, p.Spare(), "what was given back is there")
	p.SetBound(128 << 20)
	require.Equal(t, bound, p.Bound())
	p.SetBound(4 << 20)
	require.Equal(t, 4<<20, p.Bound())
	p.SetBound(64 << 20)
	require.Equal(t, 4<<20, p.Bound())
	p.Stored(1, 0)
	require.Equal(t, bound, p.Bound(), "it has so much")
	require.Greater(t, told, 1)
}

// Where rings are refused an area, what is left of that for index pages serves them.
func TestGrow_RingsTakeTheAreaOfPages(t *testing.T) {
	m := scarce{left: 9 << 20} // 8 of them for pages
	p := NewPool(m.memory(), 1<<30, MaxSize, Never)
	_, err := p.Pages(1)
	require.NoError(t, err)
	takeAll(t, p)
	require.Greater(t, p.Used(), 8<<20)
	_, err = p.Pages(MaxSize / p.PageSize())
	require.ErrorIs(t, err, errRefused)
}

// The pool leaves addresses to others.
func TestGrow_Headroom(t *testing.T) {
	const headroom = 5 << 20
	m := scarce{left: 20 << 20}
	mem := m.memory()
	mem.Headroom = headroom
	mem.Probe = func(n int) error {
		b, err := mem.Map(n)
		if err == nil {
			err = mem.Unmap(b)
		}
		return err
	}
	p := NewPool(mem, 64<<20, MaxSize, Never)
	takeAll(t, p)
	require.GreaterOrEqual(t, m.left, headroom)
	require.LessOrEqual(t, m.left, headroom+2*leastArea)
}

// Where an int has 32 bits, it does not hold four times what a large cache has.
func TestPool_LeavesTheHeadroom(t *testing.T) {
	const mb = 1 << 20
	asked := 0
	p := &Pool{mem: Memory{Headroom: 4 * mb, Probe: func(n int) error { asked = n; return nil }}}
	for _, used := range []int{0, 600 * mb, 1200 * mb, 1800 * mb} {
		p.used.Store(int64(used))
		require.NoError(t, p.probeLocked(64*mb))
		require.Equal(t, 68*mb, asked, "with %d bytes in use", used)
	}
}
