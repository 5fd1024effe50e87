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

// duration is number as a duration.
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

// maybeCold gives some shapes a cold part, and some of these a Compressor that fails at times.
func maybeCold(g geometry, shape byte) geometry {
	const has, fails = 0x20, 0x40
	by := Compressor(flateCompressor{})
	switch shape & (has | fails) {
	case has | fails:
		by = &badCompressor{one: 3}
	case has:
	default:
		return g
	}
	g = withCold(g, by)
	g.byHand = true
	return g
}

// reliable is a shape that maybeCold gives no Compressor that fails.
func reliable(shape byte) byte { return shape &^ 0x40 }

// sink has the entries of a cache go to its cold part, if it has one and the input says so,
// and returns how many bytes they are.
func (in *input) sink(c *Cache) int {
	if c.shared.Compression == nil || in.byte()%4 != 0 {
		return 0
	}
	return c.sinkAll()
}

// roomy returns one of a few shapes that have room for roomyBytes without an
// eviction, even if all of it is under keys of the same hash, or goes to the cold part.
func roomy(shape byte) geometry {
	g := maybeCold(tiny(4<<(shape%3), 1024, 64), shape)
	if g.compressor != nil {
		g.maxBytes *= 4
	}
	if shape&4 != 0 {
		g.seed = [2]uint64{}
	}
	if shape&8 != 0 {
		g.policy = PolicyFIFO
	}
	return g
}

// roomyBytes is what a cache of a roomy shape has room for.
const roomyBytes = 24 << 10

// lost returns how many entries were dropped to make room, or could not be decompressed: a
// miss is as good as a hit only if there were any.
func lost(c *Cache) uint64 {
	s := c.Stats()
	return s.EvictedEntries + s.Compression.DecompressErrors
}
