package record

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// someTimes are deadlines of every kind.
var someTimes = []Times{
	{}, {Deadlines: Timed}, {Deadlines: Timed, Expiry: 1}, {Deadlines: Timed, Expiry: 1<<32 - 1},
	{Deadlines: Idle}, {Deadlines: Idle, Expiry: 0x01020304, Last: 0x05060708},
}

// Every pair of lengths around the borders of the forms is read back as it was
// written, with the fewest bytes that the form allows.
func TestPut_EveryFormIsParsed(t *testing.T) {
	for _, klen := range []int{0, 1, 31, 32, 33, 62, 63, 64, 255, 256, MaxKey} {
		for _, vlen := range []int{0, 1, 255, 256, 8191, 8192, 16383, 16384, 32766, 32767, 32768,
			65535, 1 << 24} {
			for i, times := range append(someTimes, someTimes...) {
				var buf [MaxHeader]byte
				kind := Value
				if i >= len(someTimes) {
					kind = Spaced
				}
				b := Plain.Put(&buf, kind, klen, vlen, times)
				want := Header{Size: len(b), KeyLen: klen, ValueLen: vlen}
				want.Kind = kind
				want.Expiry, want.Deadlines = times.Expiry, times.Deadlines
				require.Equal(t, Plain.HeaderSize(kind, klen, vlen, times.Deadlines), len(b), "%+v", want)
				got, ok := Plain.Parse(b)
				require.True(t, ok)
				require.Equal(t, want, got)
				_, ok = Plain.Parse(b[:len(b)-1])
				require.False(t, ok, "%+v without its last byte", want)
				_, ok = Plain.ParseShort(buf[:4])
				require.Equal(t, len(b) == ShortHeader, ok, "%+v taken for a short one", want)
				h, ok := Plain.ParseOther(buf[:])
				require.Equal(t, len(b) != ShortHeader, ok, "%+v", want)
				require.True(t, !ok || h == want, "%+v as %+v", want, h)
				if times.Deadlines == Idle {
					require.Equal(t, times.Last, binary.LittleEndian.Uint32(b[want.LastAt():]))
				}
				Kill(b)
				want.Dead = true
				got, ok = Plain.Parse(b)
				require.True(t, ok)
				require.Equal(t, want, got)
			}
		}
	}
}

// A deadline costs exactly its own bytes, but for values of half the length that a short header
// can take otherwise. Two of them take a long header.
func TestHeaderSize_ExpiryCost(t *testing.T) {
	for klen := range 100 {
		for _, vlen := range []int{0, 100, maxShortValue >> 2, maxShortValue + 1} {
			none := Plain.HeaderSize(Value, klen, vlen, Timeless)
			require.Equal(t, none+DeadlineSize, Plain.HeaderSize(Value, klen, vlen, Timed))
			require.Equal(t, LongHeader+2*DeadlineSize, Plain.HeaderSize(Value, klen, vlen, Idle))
		}
	}
}

func TestPutNegative_IsParsed(t *testing.T) {
	for _, klen := range []int{0, 1, 63, 64, MaxKey} {
		var buf [MaxHeader]byte
		b := Plain.Put(&buf, Negative|Spaced, klen, 0, Times{Deadlines: Timed, Expiry: 7})
		want := Header{Size: LongHeader + DeadlineSize, KeyLen: klen}
		want.Deadlines, want.Kind, want.Expiry = Timed, Negative|Spaced, 7
		got, ok := Plain.Parse(b)
		require.True(t, ok)
		require.Equal(t, want, got)
		_, ok = Plain.Parse(b[:len(b)-1])
		require.False(t, ok, "a part of one")
		b[3] = 1
		_, ok = Plain.Parse(b)
		require.False(t, ok, "one with a value")
	}
}

// Lookups copy headers: the expiry fits where there was padding before.
func TestHeader_IsSmall(t *testing.T) {
	require.Equal(t, 3*unsafe.Sizeof(0)+8, unsafe.Sizeof(Header{}))
}

// The header of a dead record of any length says that length, and no more than it takes.
func TestPutDead_EveryLength(t *testing.T) {
	for _, form := range []Form{Plain, Checked} {
		lengths := []int{70_000, 1 << 20}
		for n := form.MinDead(); n < 300; n++ {
			lengths = append(lengths, n, n+maxShortValue-250)
		}
		for n := maxShortValue - 10; n < maxShortValue+30; n++ {
			lengths = append(lengths, n)
		}
		for _, n := range lengths {
			var buf [MaxHeader]byte
			b := form.PutDead(&buf, n)
			h, ok := form.Parse(b)
			require.True(t, ok, "%d bytes", n)
			require.True(t, h.Dead)
			require.Equal(t, n, h.Total())
			require.LessOrEqual(t, h.Size, n)
		}
	}
}

// Another length of the value changes nothing else of a header.
func TestPutValueLen_LeavesTheRest(t *testing.T) {
	for _, klen := range []int{0, 1, 31, 32, 63, 64, 1000} {
		for _, times := range someTimes {
			for _, lens := range [][2]int{{0, 1}, {32_000, 5}, {100, 32_767}, {70_000, 1 << 20}} {
				var buf [MaxHeader]byte
				b := Plain.Put(&buf, Kind(klen)<<7, klen, lens[0], times)
				want, _ := Plain.Parse(b)
				if Plain.HeaderSize(Kind(klen)<<7, klen, lens[1], times.Deadlines) != want.Size {
					continue
				}
				want.PutValueLen(b, lens[1])
				want.ValueLen = lens[1]
				got, ok := Plain.Parse(b)
				require.True(t, ok)
				require.Equal(t, want, got)
			}
		}
	}
}

// A packed record keeps its deadlines, and a checksum tells them apart from others.
func TestPutPacked_EveryTimesAreParsed(t *testing.T) {
	sums := map[uint32]bool{}
	for _, times := range someTimes {
		var buf [MaxHeader]byte
		b := Checked.Put(&buf, Packed|Spaced, 20, 300, times)
		require.Len(t, b, Checked.HeaderSize(Packed, 20, 300, times.Deadlines))
		got, ok := Checked.Parse(b)
		require.True(t, ok)
		want := Header{Size: len(b), KeyLen: 20, ValueLen: 300}
		want.Kind, want.Expiry, want.Deadlines = Packed|Spaced, times.Expiry, times.Deadlines
		require.Equal(t, want, got)
		require.Equal(t, LongHeader, got.SumAt())
		sums[got.Sum(1, 2)] = true
		got.Kind = Packed
		require.False(t, sums[got.Sum(1, 2)], "a checksum tells what is spaced")
	}
	require.Len(t, sums, len(someTimes))
}
