package ringtest

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
)

// Input is what is left of a fuzzer's bytes.
type Input []byte

// Take returns the next n bytes, or what there is.
func (in *Input) Take(n int) []byte {
	n = min(n, len(*in))
	b := (*in)[:n:n]
	*in = (*in)[n:]
	return b
}

// Byte returns the next byte, 0 behind the end.
func (in *Input) Byte() byte {
	if b := in.Take(1); len(b) > 0 {
		return b[0]
	}
	return 0
}

// Number returns one of any sign and size, often near the ends of the range: of
// 64 plain bits nearly all would be huge, and none extreme.
func (in *Input) Number() int64 {
	var b [8]byte
	copy(b[:], in.Take(8))
	shift := in.Byte()
	n := int64(binary.LittleEndian.Uint64(b[:])) >> (shift % 64)
	if shift >= 0xe0 {
		n ^= math.MinInt64
	}
	return n
}

// Duration is number as a duration.
func (in *Input) Duration() time.Duration { return time.Duration(in.Number()) }

// Value returns a few bytes of the input, now and then so often that they make
// up to 8 KB.
func (in *Input) Value() []byte {
	size := in.Byte()
	times := 1 + int(size>>5)
	if times == 8 {
		times += int(in.Byte())
	}
	return bytes.Repeat(in.Take(int(size%32)), times)
}

// Key returns one of a few keys, some of which cross chunks.
func (in *Input) Key() string {
	b := in.Byte() % 8
	return string(bytes.Repeat([]byte{b}, []int{0, 1, 2, 3, 60, 64, 300, 1500}[b]))
}

// AddStreams adds inputs that are random bytes, and so of many operations.
func AddStreams(f *testing.F, size int) {
	rnd := NewRand(1)
	for i := range 12 {
		data := make([]byte, size)
		FillRandom(rnd, data)
		f.Add(byte(i*23), data)
	}
}

// MaybeCold gives some shapes a cold part, and some of these a Compressor that fails at times.
func MaybeCold(g Shape, shape byte) Shape {
	const has, fails = 0x20, 0x40
	by := ringcache.Compressor(FlateCompressor{})
	switch shape & (has | fails) {
	case has | fails:
		by = &BadCompressor{One: 3}
	case has:
	default:
		return g
	}
	g = WithCold(g, by)
	g.ByHand = true
	return g
}

// Reliable is a shape that MaybeCold gives no Compressor that fails.
func Reliable(shape byte) byte { return shape &^ 0x40 }

// Sink has the entries of a cache go to its cold part, if it has one and the input says so,
// and returns how many bytes they are.
func (in *Input) Sink(c *ringcache.Cache) int {
	if Shared(c).Compression == nil || in.Byte()%4 != 0 {
		return 0
	}
	return SinkAll(c)
}

// Roomy returns one of a few shapes that have room for RoomyBytes without an
// eviction, even if all of it is under keys of the same hash, or goes to the cold part.
func Roomy(shape byte) Shape {
	g := MaybeCold(Tiny(4<<(shape%3), 1024, 64), shape)
	if g.Compressor != nil {
		g.MaxBytes *= 4
	}
	if shape&4 != 0 {
		g.Seed = [2]uint64{}
	}
	if shape&8 != 0 {
		g.Policy = ringcache.PolicyFIFO
	}
	return g
}

// RoomyBytes is what a cache of a roomy shape has room for.
const RoomyBytes = 24 << 10

// Lost returns how many entries were dropped to make room, or could not be decompressed: a
// miss is as good as a hit only if there were any.
func Lost(c *ringcache.Cache) uint64 {
	s := c.Stats()
	return s.EvictedEntries + PolicyOf(c).DecompressErrors
}
