package index

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/policy"
)

// entry is a record of the model: what its slot has to say.
type entry struct {
	hash uint64
	ring policy.Ring
	pos  uint64
}

// model is an index beside a map of what it has to hold, and two rings that are nothing
// but windows.
type model struct {
	t      *testing.T
	rnd    *rand.Rand
	x      Index
	rings  [2]Window
	queue  [2][]entry // records in the rings, the oldest first; not all have a slot
	slots  map[entry]bool
	pool   *chunk.Pool
	forced int
}

// newPool returns a pool on the heap. Its pages have 16 groups.
func newPool(t *testing.T) *chunk.Pool {
	var maps [][]Group // aligned to words, as pages of a pool on the heap are
	mem := chunk.Memory{
		Map: func(n int) ([]byte, error) {
			maps = append(maps, make([]Group, n/groupBytes))
			first := unsafe.SliceData(maps[len(maps)-1])
			return unsafe.Slice((*byte)(unsafe.Pointer(first)), n), nil
		},
		Unmap:   func([]byte) error { return nil },
		Discard: func([]byte) {},
	}
	t.Cleanup(func() { clear(maps) })
	return chunk.NewPool(mem, 4<<20, 2<<10, chunk.Never)
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), slots: map[entry]bool{}}
	m.pool = newPool(t)
	m.x.Init(m.pool.PageSize())
	for i := range m.rings {
		m.rings[i].Mask = 1<<16 - 1 // positions come round often
	}
	m.grow()
	return m
}

func (m *model) windows() *Windows {
	return &Windows{&m.rings[0], &m.rings[1], &empty, &empty}
}

// hash draws a hash; one in four is of a few that are all alike.
func (m *model) hash() uint64 {
	if h := m.rnd.Uint64(); m.rnd.IntN(4) > 0 {
		return h
	}
	return m.rnd.Uint64N(4)<<hashAt | m.rnd.Uint64N(128)<<33
}

// append makes a record in a ring.
func (m *model) append(h uint64, to policy.Ring) entry {
	w := &m.rings[to]
	n := 1 + m.rnd.Uint64N(30)
	for w.Size+n > w.Mask/8 {
		m.release(to)
	}
	e := entry{hash: h, ring: to, pos: w.Head()}
	w.Size += n
	m.queue[to] = append(m.queue[to], e)
	return e
}

// release drops the oldest record of a ring; its slot is stale.
func (m *model) release(from policy.Ring) {
	w, q := &m.rings[from], m.queue[from]
	next := w.Head()
	if len(q) > 1 {
		next = q[1].pos
	}
	w.Size -= (next - w.Tail) & w.Mask
	w.Tail = next
	delete(m.slots, q[0])
	m.queue[from] = q[1:]
}

// lose says that the index had no place for a slot.
func (m *model) lose(victim uint64) {
	if w := m.windows(); w.Of(victim).Live(victim) {
		for e := range m.slots {
			if e.ring == Ring(victim) && e.pos == Pos(victim) {
				delete(m.slots, e)
			}
		}
	}
	m.forced++
}

func (m *model) insert() {
	e := m.append(m.hash(), policy.Ring(m.rnd.IntN(2)))
	slot := Slot(e.hash, e.ring, e.pos)
	if m.rnd.IntN(2) == 0 && m.x.Add(slot, e.hash) {
		for other := range m.slots {
			alike := SameHash(other.hash, e.hash) && Tag(other.hash) == Tag(e.hash)
			require.False(m.t, alike, "Add, although %+v was there before %+v", other, e)
		}
	} else if victim, forced := m.x.Insert(slot, Tag(e.hash), m.windows()); forced {
		m.lose(victim)
	}
	m.slots[e] = true
}

// any returns an entry that has a slot, and its place.
func (m *model) any() (e entry, p Place) {
	for e = range m.slots {
		break
	}
	p, ok := m.x.Find(e.hash, e.ring, e.pos)
	require.True(m.t, ok, "%+v", e)
	home := m.x.Group(m.x.Geometry(e.hash).Home(e.hash))
	require.True(m.t, p.Group == home || m.x.MayHavePassed(e.hash), "%+v", e)
	return e, p
}

func (m *model) grow() {
	pages, err := m.pool.Pages(1 + m.rnd.IntN(3))
	require.NoError(m.t, err)
	m.x.Grow(pages)
	if m.x.Pages() == len(pages) { // the first ones: there is nothing to move
		m.x.Move(1, m.windows(), m.lose)
	}
}

func (m *model) step() {
	switch x := m.rnd.IntN(100); {
	case x < 50:
		m.insert()
	case x < 60 && len(m.slots) > 0:
		e, p := m.any()
		m.x.Remove(p)
		delete(m.slots, e)
	case x < 70 && len(m.slots) > 0: // moves to the head of a ring
		e, p := m.any()
		moved := m.append(e.hash, policy.Ring(m.rnd.IntN(2)))
		m.x.Store(p, WithFreq(Slot(e.hash, moved.ring, moved.pos), Freq(p.Slot)))
		delete(m.slots, e)
		m.slots[moved] = true
	case x < 80 && len(m.slots) > 0: // is read
		_, p := m.any()
		Raise(&p.Group.Slots[p.I], p.Slot)
		require.Equal(m.t, min(Freq(p.Slot)+1, 3), Freq(p.Group.Slots[p.I].Load()))
	case x < 90 && m.x.Growing():
		m.x.Move(1+m.rnd.IntN(3), m.windows(), m.lose)
	case x == 90 && !m.x.Growing() && m.x.Pages() < 24:
		m.grow()
	case x < 95 && len(m.queue[0]) > 0:
		m.release(policy.Small)
	}
	m.x.Sweep(4, m.windows())
}

// check compares the index with the map, and checks its invariants.
func (m *model) check() {
	w, live := m.windows(), 0
	passed := make([][2]uint64, m.x.Groups())
	var used [policy.Rings]int32
	for n := range m.x.cur.Load() {
		g := m.x.Group(n)
		for i := range GroupSlots {
			if g.ctrl>>(8*i)&0xff == 0 {
				continue
			}
			s := g.Slots[i].Load()
			used[Ring(s)]++
			for p := m.x.Geometry(s).Path(s); p.At != n; p.Next() {
				passed[p.At][HashOf(s)&1]++
				require.NotZero(m.t, p.Left, "I4: slot %d of group %d is not on its path", i, n)
			}
			if w.Of(s).Live(s) {
				live++
				continue
			}
			age, most := w.Of(s).Age(s), w.Of(s).Mask/4*3
			require.LessOrEqual(m.t, age, most, "I5: the age of a stale slot")
		}
	}
	for n := range m.x.cur.Load() {
		for side, has := range passed[n] {
			if count := m.x.Group(n).Overflow(uint64(side) << hashAt); count != overflowMost {
				require.Equal(m.t, has, count, "I4: what passed group %d on side %d", n, side)
			} // else it may be any number
		}
	}
	require.Equal(m.t, used, m.x.Used, "I9: slots by part")
	require.Len(m.t, m.slots, live)
	for e := range m.slots {
		p, ok := m.x.Find(e.hash, e.ring, e.pos)
		require.True(m.t, ok, "%+v", e)
		require.True(m.t, SameHash(p.Slot, e.hash))
	}
}

// takeAll takes the homes one after another, and has to find every entry.
func (m *model) takeAll() {
	all := map[uint64]bool{}
	var slots []uint64
	for at := uint64(0); at < 1<<HashBits; {
		var end uint64
		slots, end = m.x.TakeHome(slots[:0], at, m.windows())
		require.Greater(m.t, end, at)
		for _, s := range slots {
			require.GreaterOrEqual(m.t, HashOf(s), at)
			require.Less(m.t, HashOf(s), end)
			all[Location(s)] = true
		}
		at = end
	}
	require.Len(m.t, all, len(m.slots))
	for e := range m.slots {
		require.True(m.t, all[Slot(e.hash, e.ring, e.pos)], "%+v", e)
	}
}

// Whatever is done to an index, it holds what it should, also while it grows.
func TestIndex_HoldsWhatAMapHolds(t *testing.T) {
	growing := 0
	for seed := range uint64(4) {
		m := newModel(t, seed)
		for i := range 6000 {
			m.step()
			if m.x.Growing() {
				growing++
			}
			if i%16 == 0 {
				m.check()
			}
			if i%256 == 0 {
				m.takeAll()
			}
		}
		require.Greater(t, m.x.Pages(), 9, "it has not grown")
		require.NotZero(t, m.forced, "nothing was displaced")
	}
	require.Greater(t, growing, 500)
}

// A reader may find an index that was reset or grows meanwhile: its path ends, and
// leads to pages.
func TestIndex_PathOfAResetIndexEnds(t *testing.T) {
	m := newModel(t, 1)
	for range 1000 {
		m.insert()
	}
	pages := m.x.TakenPages()
	require.Equal(t, pages, m.x.Reset())
	require.True(t, m.x.Empty())
	_, ok := m.x.Find(m.hash(), policy.Main, 0)
	require.False(t, ok)
	for range 1000 {
		n, h := 0, m.hash()
		for p := m.x.Geometry(h).Path(h); ; p.Next() {
			require.Zero(t, p.At, "the table may have no more")
			require.NotNil(t, m.x.Group(p.At))
			if n++; p.Left == 0 {
				break
			}
			require.Less(t, n, probeGroups)
		}
		require.Zero(t, m.x.Geometry(h).Home(h))
	}
}
