// Package generation determines which namespace a key belongs to, and whether its generation is
// still valid.
//
// Every key of a namespace begins with the namespace's generation, a word of 8 bytes. Invalidating
// a namespace gives it a new generation, and the entries of the old one are then forgotten. A
// generation made here contains a check, a keyed hash of its other half. A generation with a
// correct check that is not in the table is therefore known to be forgotten, and no list of
// forgotten generations is needed, neither in memory nor in a file. Any other key is mistaken for
// one of a namespace with a probability of 1 in 2^32.
package generation

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// Size is the length of a generation in a key.
const Size = 8

// Usage counts the entries of one generation and their bytes. The zero value is ready for use.
type Usage struct {
	Entries, Bytes atomic.Int64

	// uncounted tells which buckets' entries are not yet included in Entries and Bytes; nil means
	// none. Each element is guarded by its bucket's lock.
	uncounted atomic.Pointer[[]bool]
}

// Add adds entries and bytes of a bucket, whose lock is held, to the counts.
func (u *Usage) Add(bucket, entries, bytes int) {
	if u.Counts(bucket) {
		u.Entries.Add(int64(entries))
		u.Bytes.Add(int64(bytes))
	}
}

// Counts reports whether the entries of a bucket are counted.
func (u *Usage) Counts(bucket int) bool {
	un := u.uncounted.Load()
	return un == nil || !(*un)[bucket]
}

// Counting begins to count the entries of a bucket, which now has the given entries and bytes. It
// does nothing if they are already counted.
func (u *Usage) Counting(bucket, entries, bytes int) {
	if u.Counts(bucket) {
		return
	}
	(*u.uncounted.Load())[bucket] = false
	u.Entries.Add(int64(entries))
	u.Bytes.Add(int64(bytes))
}

// Table holds the generations that are in use. It is made by New. Lookups take no lock.
type Table struct {
	seed      [2]uint64
	inUse     atomic.Bool
	buried    atomic.Uint64 // generations that have been forgotten
	uncounted atomic.Bool   // some entries are not counted yet
	live      atomic.Pointer[circle]

	counting sync.Mutex // taken before the locks of buckets

	mu    sync.Mutex
	first uint32 // the number before the first one drawn here
	last  uint32 // the number drawn last
	used  int    // number of places that are not empty
}

// circle is an open-addressed table. Its length is a power of two, and at least half of it is
// empty.
type circle []place

type place struct {
	generation atomic.Uint64 // 0: empty
	usage      atomic.Pointer[Usage]
}

// New returns a table whose generations are checked with the secret seed.
func New(seed [2]uint64) *Table {
	t := &Table{seed: seed}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	t.first = binary.LittleEndian.Uint32(b[:])
	t.last = t.first
	empty := make(circle, 16)
	t.live.Store(&empty)
	return t
}

// InUse reports whether the table has or had any generation.
func (t *Table) InUse() bool { return t.inUse.Load() }

// Buried returns the number of generations that were forgotten.
func (t *Table) Buried() uint64 { return t.buried.Load() }

// Found notes that the cache has found entries whose generations have this table's check. They must
// be counted, or dropped if their generations are forgotten.
func (t *Table) Found() {
	t.inUse.Store(true)
	t.uncounted.Store(true)
}

// Make returns a new generation, which no entry has, and its usage.
func (t *Table) Make() (uint64, *Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		t.last++
		g := t.checked(t.last)
		if g != 0 && t.find(g) == nil {
			u := new(Usage)
			t.add(g, u)
			return g, u
		}
	}
}

// Adopt adds a generation that came from elsewhere, whose entries no bucket has counted yet, and
// returns its usage, or nil if it was forgotten here.
func (t *Table) Adopt(g uint64, buckets int) *Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.find(g); p != nil {
		return p.usage.Load()
	}
	if g == 0 || t.isDrawn(g) {
		return nil
	}
	un := make([]bool, buckets)
	for i := range un {
		un[i] = true
	}
	u := new(Usage)
	u.uncounted.Store(&un)
	t.add(g, u)
	t.uncounted.Store(true)
	return u
}

// Count calls count, which must count the entries of each bucket, if some are not counted yet.
func (t *Table) Count(count func()) {
	t.counting.Lock()
	defer t.counting.Unlock()
	if !t.uncounted.Swap(false) {
		return
	}
	count()
	t.Each(func(u *Usage) {
		if un := u.uncounted.Load(); un != nil && !slices.Contains(*un, true) {
			u.uncounted.Store(nil)
		}
	})
}

// Forget removes a generation; its entries are then forgotten.
func (t *Table) Forget(g uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.find(g); p != nil {
		p.usage.Store(nil)
	}
	t.buried.Add(1)
}

// Of returns the usage of the generation with which a key begins, or reports that it was forgotten.
// For a key of no namespace it returns nil and false.
func (t *Table) Of(prefix uint64) (u *Usage, forgotten bool) {
	if p := t.find(prefix); p != nil {
		u = p.usage.Load()
		return u, u == nil
	}
	return nil, t.IsOurs(prefix)
}

// Each calls fn with each usage, under the table's lock.
func (t *Table) Each(fn func(u *Usage)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range *t.live.Load() {
		p := &(*t.live.Load())[i]
		if u := p.usage.Load(); u != nil {
			fn(u)
		}
	}
}

// find returns the place of a generation, or nil.
func (t *Table) find(g uint64) *place {
	all := *t.live.Load()
	if g == 0 {
		return nil
	}
	for i := g & uint64(len(all)-1); ; i = (i + 1) & uint64(len(all)-1) {
		switch all[i].generation.Load() {
		case g:
			return &all[i]
		case 0:
			return nil
		}
	}
}

// add enters a generation, under the lock.
func (t *Table) add(g uint64, u *Usage) {
	t.inUse.Store(true)
	if all := *t.live.Load(); 2*(t.used+1) > len(all) {
		t.rebuild()
	}
	t.used++
	(*t.live.Load()).put(g, u)
}

// put enters a generation that is not in the table.
func (c circle) put(g uint64, u *Usage) {
	i := g & uint64(len(c)-1)
	for c[i].generation.Load() != 0 {
		i = (i + 1) & uint64(len(c)-1)
	}
	c[i].usage.Store(u) // before lookups can find it
	c[i].generation.Store(g)
}

// rebuild makes room for twice the generations in use. It removes the forgotten ones that were
// drawn here: Of and Adopt recognize them by their number. Forgotten ones that were adopted stay.
func (t *Table) rebuild() {
	old := *t.live.Load()
	keep := func(p *place) bool {
		g := p.generation.Load()
		return g != 0 && (p.usage.Load() != nil || !t.isDrawn(g))
	}
	t.used = 0
	for i := range old {
		if keep(&old[i]) {
			t.used++
		}
	}
	size := 16
	for size < 4*(t.used+1) {
		size *= 2
	}
	all := make(circle, size)
	for i := range old {
		if p := &old[i]; keep(p) {
			all.put(p.generation.Load(), p.usage.Load())
		}
	}
	t.live.Store(&all)
}

// checked returns the generation of a number.
func (t *Table) checked(n uint32) uint64 {
	var b [20]byte
	binary.LittleEndian.PutUint64(b[:], t.seed[0])
	binary.LittleEndian.PutUint64(b[8:], t.seed[1])
	binary.LittleEndian.PutUint32(b[16:], n)
	return xxhash.Sum64(b[:])&^(1<<32-1) | uint64(n)
}

// isDrawn reports whether Make has drawn the number of a generation. If so and it is not in the
// table, it has been forgotten.
func (t *Table) isDrawn(g uint64) bool {
	return uint32(g)-t.first-1 < t.last-t.first && t.IsOurs(g)
}

// IsOurs reports whether a generation was made by a table with this secret.
func (t *Table) IsOurs(g uint64) bool { return t.checked(uint32(g)) == g }
