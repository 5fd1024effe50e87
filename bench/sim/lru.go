package sim

// lru drops what has not been read for longest. Its list goes from the newest to
// the oldest entry and is closed by a node that is no key.
type lru struct {
	entries
	next, prev []uint32
	root       uint32
}

// NewLRU returns least recently used.
func NewLRU(capacity int64, keys int) Policy {
	l := &lru{
		entries: newEntries(capacity, keys),
		next:    make([]uint32, keys+1),
		prev:    make([]uint32, keys+1),
		root:    uint32(keys),
	}
	l.next[l.root], l.prev[l.root] = l.root, l.root
	return l
}

func (l *lru) Get(key uint32) bool {
	if !l.holds(key) {
		return false
	}
	l.unlink(key)
	l.link(key)
	return true
}

func (l *lru) Access(key, size uint32) bool {
	if l.Get(key) {
		return true
	}
	if !l.fits(size) {
		return false
	}
	for l.full(size) {
		oldest := l.prev[l.root]
		l.unlink(oldest)
		l.remove(oldest)
	}
	l.add(key, size)
	l.link(key)
	return false
}

// link makes key the newest.
func (l *lru) link(key uint32) {
	newest := l.next[l.root]
	l.next[key], l.prev[key] = newest, l.root
	l.prev[newest], l.next[l.root] = key, key
}

func (l *lru) unlink(key uint32) {
	l.next[l.prev[key]], l.prev[l.next[key]] = l.next[key], l.prev[key]
}
