package sim

// s3fifo is S3-FIFO as it was published (Yang, Zhang, Qiu, Yue, Rashmi: FIFO
// queues are all you need for cache eviction, SOSP'23, algorithm 1): a small
// queue that new keys go through, a main queue for what was read there, and a
// queue of ghosts as long as main.
type s3fifo struct {
	entries
	small, main queue
	smallUsed   int64
	smallShare  int64
	freq        []uint8
	ghosts      ghosts
	threshold   uint8
}

// NewS3FIFO returns the published form. What was read threshold times in small
// goes to main: the paper has 2, and 1 is the other value in use.
func NewS3FIFO(threshold int) Make {
	return func(capacity int64, keys int) Policy {
		return &s3fifo{
			entries:    newEntries(capacity, keys),
			smallShare: max(1, capacity/10),
			freq:       make([]uint8, keys),
			ghosts:     newGhosts(0.9, keys),
			threshold:  uint8(threshold),
		}
	}
}

func (s *s3fifo) Get(key uint32) bool { return s.holds(key) && read(s.freq, key) }

func (s *s3fifo) Access(key, size uint32) bool {
	if s.Get(key) {
		return true
	}
	if !s.fits(size) {
		return false
	}
	for s.full(size) {
		s.evict()
	}
	s.add(key, size)
	s.freq[key] = 0
	if s.ghosts.take(key) {
		s.main.push(key)
	} else {
		s.small.push(key)
		s.smallUsed += int64(size)
	}
	return false
}

func (s *s3fifo) evict() {
	if s.smallUsed >= s.smallShare && s.small.len() > 0 || s.main.len() == 0 {
		s.evictSmall()
	} else {
		s.evictMain()
	}
}

// evictSmall drops one entry, unless all are worth keeping.
func (s *s3fifo) evictSmall() {
	for s.small.len() > 0 {
		key := s.small.pop()
		s.smallUsed -= int64(s.size[key])
		if s.freq[key] < s.threshold {
			s.remove(key)
			s.ghosts.add(key, s.count)
			return
		}
		s.freq[key] = 0
		s.main.push(key)
		if s.used-s.smallUsed > s.capacity-s.smallShare {
			s.evictMain()
		}
	}
}

func (s *s3fifo) evictMain() {
	for s.main.len() > 0 {
		key := s.main.pop()
		if s.freq[key] == 0 {
			s.remove(key)
			return
		}
		s.freq[key]--
		s.main.push(key)
	}
}
