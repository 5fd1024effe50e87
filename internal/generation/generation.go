// Package generation tells which namespace a key belongs to, and whether that still exists.
//
// Every key of a namespace begins with the namespace's generation, a word of 8 bytes. To
// invalidate a namespace is to give it another generation: the entries of the old one are
// forgotten then. A generation made here carries a check, a keyed hash of its other half,
// so a key whose generation is right but not in the table is known to be forgotten, and no list
// of what was forgotten is needed: not in memory, and not in a file either. No other
// key passes for one of a namespace but by a chance of 1 in 2^32.
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

// Usage is what the entries of one generation hold. The zero value is ready for use.
type Usage struct {
	Entries, Bytes atomic.Int64
	Quota          atomic.Int64 // bytes that the entries may have; 0: any number
	Order          Order        // of the entries, if there is a quota

	// uncounted has the buckets whose entries are not in Entries and Bytes yet, each
	// guarded by its bucket's lock; nil: none.
	uncounted atomic.Pointer[[]bool]
}

// Add counts so many entries and bytes more of a bucket, whose lock is held.
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

// Counting begins to count the entries of a bucket, of which there are so many. It does nothing
// if they are counted already.
func (u *Usage) Counting(bucket, entries, bytes int) {
	if u.Counts(bucket) {
		return
	}
	(*u.uncounted.Load())[bucket] = false
	u.Entries.Add(int64(entries))
	u.Bytes.Add(int64(bytes))
}

// Over reports whether n bytes more are more than the entries may have.
func (u *Usage) Over(n int) bool {
	q := u.Quota.Load()
	return q > 0 && u.Bytes.Load()+int64(n) > q
}

// Table has the generations that are in use. Make it with New. Lookups take no lock.
type Table struct {
	seed      [2]uint64
	inUse     atomic.Bool
	buried    atomic.Uint64 // generations that have been forgotten
	uncounted atomic.Bool   // of some, entries are not counted yet
	live      atomic.Pointer[circle]

	counting sync.Mutex // before the locks of buckets

	mu    sync.Mutex
	first uint32 // the number before the first that was drawn here
	last  uint32 // the number drawn last
	used  int    // places that are not empty
}

// circle is an open-addressed table. Its length is a power of two, and one half of it is empty.
type circle []place

type place struct {
	generation atomic.Uint64 // 0: empty
	usage      atomic.Pointer[Usage]
}

// New returns a table whose generations are checked with a secret.
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

// InUse reports whether there is or was any generation.
func (t *Table) InUse() bool { return t.inUse.Load() }

// Buried counts the generations that were forgotten.
func (t *Table) Buried() uint64 { return t.buried.Load() }

// Found notes that there are entries with generations of this table, perhaps of some that were
// forgotten: they are to be counted, or dropped.
func (t *Table) Found() {
	t.inUse.Store(true)
	t.uncounted.Store(true)
}

// Make returns a generation that no entry has, and its usage.
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

// Adopt takes over a generation that came from elsewhere, of which buckets count no entries yet,
// and returns its usage; nil if it was forgotten here.
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

// Count has all entries counted that are not: count is to count those of each bucket.
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

// Forget removes a generation: its entries are forgotten.
func (t *Table) Forget(g uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.find(g); p != nil {
		p.usage.Store(nil)
	}
	t.buried.Add(1)
}

// Of returns the usage of a key that begins with prefix, or whether it is of a generation that
// was forgotten. Neither is so for all other keys.
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

// put enters a generation that is not there.
func (c circle) put(g uint64, u *Usage) {
	i := g & uint64(len(c)-1)
	for c[i].generation.Load() != 0 {
		i = (i + 1) & uint64(len(c)-1)
	}
	c[i].usage.Store(u) // before lookups can find it
	c[i].generation.Store(g)
}

// rebuild makes room for twice the generations in use. It removes the forgotten ones that were
// drawn here: Of and Adopt recognize them by their number. The adopted ones stay.
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

// isDrawn reports whether Make has drawn the number of a generation. One that is not in the
// table then has been forgotten.
func (t *Table) isDrawn(g uint64) bool {
	return uint32(g)-t.first-1 < t.last-t.first && t.IsOurs(g)
}

// IsOurs reports whether a generation was made by a table with this secret.
func (t *Table) IsOurs(g uint64) bool { return t.checked(uint32(g)) == g }
