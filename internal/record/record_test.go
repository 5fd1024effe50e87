package record

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Every pair of lengths around the borders of the forms is read back as it was
// written, with the fewest bytes that the form allows.
func TestPut_EveryFormIsParsed(t *testing.T) {
	for _, klen := range []int{0, 1, 31, 32, 33, 62, 63, 64, 255, 256, MaxKey} {
		for _, vlen := range []int{0, 1, 255, 256, 32766, 32767, 32768, 65534, 65535, 65536, 1 << 24} {
			for _, expiry := range []uint32{0, 1, 0x01020304, 1<<32 - 1} {
				var buf [MaxHeader]byte
				b := Plain.Put(&buf, klen, vlen, expiry)
				want := Header{Size: len(b), KeyLen: klen, ValueLen: vlen}
				want.Expiry, want.HasExpiry = expiry, expiry != 0
				require.Equal(t, Plain.HeaderSize(klen, vlen, expiry != 0), len(b), "%+v", want)
				got, ok := Plain.Parse(b)
				require.True(t, ok)
				require.Equal(t, want, got)
				_, ok = Plain.Parse(b[:len(b)-1])
				require.False(t, ok, "%+v without its last byte", want)
				_, ok = Plain.ParseShort(buf[:4])
				require.Equal(t, len(b) == ShortHeader, ok, "%+v taken for a short one", want)
				if len(buf) >= 7 {
					h, ok := Plain.ParseExpiring(buf[:])
					require.Equal(t, len(b) == ShortHeader+ExpirySize && expiry != 0, ok, "%+v", want)
					require.True(t, !ok || h == want, "%+v as %+v", want, h)
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

// An expiry costs exactly its own bytes, but for values of half the length that
// a short header can take otherwise.
func TestHeaderSize_ExpiryCost(t *testing.T) {
	for klen := range 100 {
		for _, vlen := range []int{0, 100, maxShortTimed, maxShortValue + 1} {
			got := Plain.HeaderSize(klen, vlen, true) - Plain.HeaderSize(klen, vlen, false)
			require.Equal(t, ExpirySize, got, "key of %d and value of %d bytes", klen, vlen)
		}
	}
}

func TestParse_UnknownKindIsRefused(t *testing.T) {
	for kind := byte(kindInternal + 1); kind <= kindMask; kind++ {
		b := [MaxHeader]byte{longBit | kind, 1, 0, 1}
		_, ok := Plain.Parse(b[:])
		require.False(t, ok, "kind %d", kind)
	}
}

func TestPutNegative_IsParsed(t *testing.T) {
	for _, klen := range []int{0, 1, 63, 64, MaxKey} {
		var buf [MaxHeader]byte
		b := Plain.PutNegative(&buf, klen, 7)
		want := Header{Size: Plain.NegativeSize(), KeyLen: klen}
		want.HasExpiry, want.Kind, want.Expiry = true, Negative, 7
		got, ok := Plain.Parse(b)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Len(t, b, Plain.NegativeSize())
		_, ok = Plain.Parse(b[:Plain.NegativeSize()-1])
		require.False(t, ok, "a part of one")
		b[3] = 1
		_, ok = Plain.Parse(b)
		require.False(t, ok, "one with a value")
	}
}

func TestPutInternal_IsParsed(t *testing.T) {
	for _, form := range []Form{Plain, Checked} {
		for _, klen := range []int{0, 20, 64, MaxKey} {
			var buf [MaxHeader]byte
			b := form.PutInternal(&buf, klen, 8)
			got, ok := form.Parse(b)
			require.True(t, ok)
			want := Header{Size: form.InternalSize(), KeyLen: klen, ValueLen: 8}
			want.Kind = Internal
			require.Equal(t, want, got)
			plain := want
			plain.Kind = Value
			require.NotEqual(t, plain.Sum(1, 2), want.Sum(1, 2), "a checksum tells the kind")
		}
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
		for _, expiry := range []uint32{0, 7} {
			for _, lens := range [][2]int{{0, 1}, {32_000, 5}, {100, 32_767}, {70_000, 1 << 20}} {
				var buf [MaxHeader]byte
				b := Plain.Put(&buf, klen, lens[0], expiry)
				want, _ := Plain.Parse(b)
				if Plain.HeaderSize(klen, lens[1], expiry != 0) != want.Size {
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
