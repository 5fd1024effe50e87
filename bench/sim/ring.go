package sim

// RingOptions are the settings of the policy that ringcache started from.
type RingOptions struct {
	Small     float64 // small's share of the capacity
	Threshold int     // reads in small that take an entry to main
	Ghosts    float64 // ghosts for each entry that is held
	Keep      bool    // an entry that moves to main keeps its frequency
	Flow      bool    // while main has never been full, what falls out of small goes there
}

// Ring is the policy of docs/design.md with as many ghosts as entries.
var Ring = RingOptions{Small: 0.1, Threshold: 1, Ghosts: 1, Flow: true}

// ring is S3-FIFO on two rings of fixed size, as ringcache does it: what main
// drops becomes a ghost too, and main is filled first.
type ring struct {
	entries
	o           RingOptions
	small, main queue
	smallUsed   int64
	smallRoom   int64
	freq        []uint8
	ghosts      ghosts
	filled      bool // main has been full
}

// NewRing returns the policy with the settings o.
func NewRing(o RingOptions) Make {
	return func(capacity int64, keys int) Policy {
		return &ring{
			entries:   newEntries(capacity, keys),
			o:         o,
			smallRoom: max(1, int64(o.Small*float64(capacity)+0.5)),
			freq:      make([]uint8, keys),
			ghosts:    newGhosts(o.Ghosts, keys),
		}
	}
}

func (r *ring) Get(key uint32) bool { return r.holds(key) && read(r.freq, key) }

func (r *ring) Access(key, size uint32) bool {
	if r.Get(key) {
		return true
	}
	if !r.fits(size) {
		return false
	}
	r.freq[key] = 0
	if r.ghosts.take(key) {
		r.toMain(key, size)
	} else {
		r.toSmall(key, size)
	}
	return false
}

// toSmall inserts a new entry. One that is larger than small has it for itself,
// and main makes the rest of the room.
func (r *ring) toSmall(key, size uint32) {
	for r.small.len() > 0 && r.smallUsed+int64(size) > r.smallRoom {
		r.leaveSmall()
	}
	r.add(key, size)
	r.small.push(key)
	r.smallUsed += int64(size)
	r.shrinkMain()
}

// leaveSmall decides on the oldest entry of small.
func (r *ring) leaveSmall() {
	key := r.small.pop()
	size := r.size[key]
	r.smallUsed -= int64(size)
	r.remove(key)
	read := int(r.freq[key]) >= r.o.Threshold
	flows := r.o.Flow && !r.filled && r.mainUsed()+int64(size) <= r.mainRoom()
	if !read && !flows {
		r.ghosts.add(key, r.count)
		return
	}
	if !r.o.Keep {
		r.freq[key] = 0
	}
	r.toMain(key, size)
}

// toMain inserts at the head of main.
func (r *ring) toMain(key, size uint32) {
	r.add(key, size)
	r.main.push(key)
	r.shrinkMain()
}

// shrinkMain drops from the tail of main until it fits.
func (r *ring) shrinkMain() {
	for r.mainUsed() > r.mainRoom() {
		r.filled = true
		key := r.main.pop()
		if r.freq[key] > 0 {
			r.freq[key]--
			r.main.push(key)
			continue
		}
		r.remove(key)
		r.ghosts.add(key, r.count)
	}
}

func (r *ring) mainUsed() int64 { return r.used - r.smallUsed }
func (r *ring) mainRoom() int64 { return r.capacity - max(r.smallRoom, r.smallUsed) }
