package sim

// ghosts remembers keys that were dropped, the latest of them.
type ghosts struct {
	factor float64  // how many, for each entry that is held
	queue  queue    // oldest first; a key is remembered if its mark is the place here
	mark   []uint64 // place of the key in the queue, counted from 1; 0 for none
	count  int
}

func newGhosts(factor float64, keys int) ghosts {
	return ghosts{factor: factor, mark: make([]uint64, keys)}
}

// add remembers key while live entries are held, and forgets what is too much.
func (g *ghosts) add(key uint32, live int) {
	g.queue.push(key)
	if g.mark[key] == 0 {
		g.count++
	}
	g.mark[key] = g.queue.head
	for float64(g.count) > g.factor*float64(live) {
		g.forgetOldest()
	}
}

func (g *ghosts) forgetOldest() {
	key := g.queue.pop()
	if g.mark[key] == g.queue.tail { // else it was taken, or dropped again later
		g.mark[key] = 0
		g.count--
	}
}

// take reports whether key is remembered, and forgets it.
func (g *ghosts) take(key uint32) bool {
	if g.mark[key] == 0 {
		return false
	}
	g.mark[key] = 0
	g.count--
	return true
}
