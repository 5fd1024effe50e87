package ringcache

import (
	"testing"
	"unsafe"
)

// Every pair of lengths around the borders of the forms is read back as it was
// written, with the fewest bytes that the form allows.
func TestRecord_Forms(t *testing.T) {
	for _, klen := range []int{0, 1, 31, 32, 33, 62, 63, 64, 255, 256, maxKey} {
		for _, vlen := range []int{0, 1, 255, 256, 32766, 32767, 32768, 65534, 65535, 65536, 1 << 24} {
			for _, expiry := range []uint32{0, 1, 0x01020304, 1<<32 - 1} {
				var buf [maxHeader]byte
				b := putHeader(&buf, klen, vlen)
				if expiry != 0 {
					b = putTimedHeader(&buf, klen, vlen, expiry)
				}
				want := header{size: len(b), klen: klen, vlen: vlen, fate: fate{timed: expiry != 0, expiry: expiry}}
				size := headerSize(klen, vlen)
				if want.timed {
					size = timedHeaderSize(klen, vlen)
				}
				if len(b) != size {
					t.Fatalf("%+v: %d bytes, announced as %d", want, len(b), size)
				}
				got, ok := parseHeader(b)
				if !ok || got != want {
					t.Fatalf("got %+v (%v), want %+v", got, ok, want)
				}
				b[0] |= deadBit
				want.dead = true
				if got, ok := parseHeader(b); !ok || got != want {
					t.Fatalf("dead: got %+v (%v), want %+v", got, ok, want)
				}
				if _, ok := parseHeader(b[:len(b)-1]); ok {
					t.Fatalf("%+v: a header without its last byte is taken", want)
				}
				if _, ok := parseShort(buf[:4]); ok != (len(b) == shortHeader) {
					t.Fatalf("%+v: taken for a short one: %v", want, ok)
				}
			}
		}
	}
}

// An expiry costs exactly its own bytes, but for values of half the length that
// a short header can take otherwise.
func TestRecord_ExpiryCost(t *testing.T) {
	for klen := range 100 {
		for _, vlen := range []int{0, 100, maxTimedValue, maxShortValue + 1} {
			if got := timedHeaderSize(klen, vlen) - headerSize(klen, vlen); got != expirySize {
				t.Errorf("key of %d and value of %d bytes: an expiry costs %d", klen, vlen, got)
			}
		}
	}
}

func TestRecord_UnknownKinds(t *testing.T) {
	for kind := byte(kindMark + 1); kind <= kindMask; kind++ {
		b := [maxHeader]byte{longBit | kind, 1, 0, 1}
		if h, ok := parseHeader(b[:]); ok {
			t.Errorf("kind %d is read as %+v", kind, h)
		}
	}
}

func TestRecord_Mark(t *testing.T) {
	for _, klen := range []int{0, 1, 63, 64, maxKey} {
		var buf [maxHeader]byte
		b := putMark(&buf, klen, 7)
		want := header{size: markHeader, klen: klen, fate: fate{timed: true, absent: true, expiry: 7}}
		if h, ok := parseHeader(b); !ok || h != want || len(b) != markHeader {
			t.Errorf("a mark with a key of %d bytes is read as %+v (%v)", klen, h, ok)
		}
		if _, ok := parseHeader(b[:markHeader-1]); ok {
			t.Error("a part of a mark is read")
		}
		b[3] = 1
		if h, ok := parseHeader(b); ok {
			t.Errorf("a mark with a value is read as %+v", h)
		}
	}
}

// Lookups copy headers: the expiry fits where there was padding before.
func TestRecord_HeaderIsSmall(t *testing.T) {
	if got, want := unsafe.Sizeof(header{}), 3*unsafe.Sizeof(0)+8; got != want {
		t.Errorf("a decoded header takes %d bytes, want %d", got, want)
	}
}
