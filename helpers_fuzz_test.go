package ringcache

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"
)

// input is what is left of a fuzzer's bytes.
type input []byte

// take returns the next n bytes, or what there is.
func (in *input) take(n int) []byte {
	n = min(n, len(*in))
	b := (*in)[:n:n]
	*in = (*in)[n:]
	return b
}

// byte returns the next byte, 0 behind the end.
func (in *input) byte() byte {
	if b := in.take(1); len(b) > 0 {
		return b[0]
	}
	return 0
}

// number returns one of any sign and size, often near the ends of the range: of
// 64 plain bits nearly all would be huge, and none extreme.
func (in *input) number() int64 {
	var b [8]byte
	copy(b[:], in.take(8))
	shift := in.byte()
	n := int64(binary.LittleEndian.Uint64(b[:])) >> (shift % 64)
	if shift >= 0xe0 {
		n ^= math.MinInt64
	}
	return n
}

func (in *input) duration() time.Duration { return time.Duration(in.number()) }

// value returns a few bytes of the input, now and then so often that they make
// up to 8 KB.
func (in *input) value() []byte {
	size := in.byte()
	times := 1 + int(size>>5)
	if times == 8 {
		times += int(in.byte())
	}
	return bytes.Repeat(in.take(int(size%32)), times)
}

// key returns one of a few keys, some of which cross chunks.
func (in *input) key() string {
	b := in.byte() % 8
	return string(bytes.Repeat([]byte{b}, []int{0, 1, 2, 3, 60, 64, 300, 1500}[b]))
}

// addStreams adds inputs that are random bytes, and so of many operations.
func addStreams(f *testing.F, size int) {
	rnd := newRand(1)
	for i := range 12 {
		data := make([]byte, size)
		fillRandom(rnd, data)
		f.Add(byte(i*23), data)
	}
}

// roomy returns one of a few shapes that have room for roomyBytes without an
// eviction, even if all of it is under keys of the same hash.
func roomy(shape byte) geometry {
	g := tiny(4<<(shape%3), 1024, 64)
	if shape&4 != 0 {
		g.seed = [2]uint64{}
	}
	if shape&8 != 0 {
		g.policy = PolicyFIFO
	}
	return g
}

const roomyBytes = 24 << 10

// evictions returns how many entries were dropped to make room: a miss is as
// good as a hit only if there were any.
func evictions(c *Cache) uint64 {
	var s Stats
	c.UpdateStats(&s)
	return s.EvictedEntries
}
