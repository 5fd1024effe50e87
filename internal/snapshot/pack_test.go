package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
)

const packSalt = 7

var ofRecords = BlockHeader{Kind: kindRecords}

// noise returns n bytes that cannot be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// blockOf returns a block with that body.
func blockOf(body []byte) *Block {
	var b Block
	b.Reset()
	b.Bytes = append(b.Bytes, body...)
	return &b
}

// unseal returns the body of a sealed block, and whether it was packed.
func unseal(t testing.TB, sealed []byte, to *Buffers) (body []byte, packed bool) {
	t.Helper()
	h, err := parseBlock(sealed, packSalt, 0)
	require.NoError(t, err)
	body = sealed[BlockHeaderSize:]
	require.EqualValues(t, len(body), h.Length)
	require.Equal(t, h.sum, sumOf(packSalt, body))
	body, err = to.unpack(&Ref{BlockHeader: h}, body)
	require.NoError(t, err)
	return body, h.Length != h.Size
}

// Bodies come back through one block and one pair of buffers, longer and shorter ones in turn.
// Those that do not get an eighth smaller, or are too short or too long, are as they were.
func TestBlock_PackedWhereThatSavesAnEighth(t *testing.T) {
	text := bytes.Repeat([]byte("some text that repeats itself, "), MaxBlock/31+1)
	half := append(noise(3000), text[:3000]...)
	little := append(noise(9500), text[:500]...)
	var b Block
	var to Buffers
	for _, test := range []struct {
		body   []byte
		packed bool
	}{
		{text[:MaxBlock], true}, {text[:leastPacked], true}, {text[:leastPacked-1], false},
		{text[:MaxBlock+1], false}, {noise(MaxBlock), false}, {noise(600), false}, {half, true},
		{little, false}, {nil, false}, {make([]byte, MaxBlock), true}, {text[:1000], true},
	} {
		b.Reset()
		b.Bytes = append(b.Bytes, test.body...)
		sealed := b.Finish(ofRecords, packSalt)
		body, packed := unseal(t, sealed, &to)
		require.True(t, bytes.Equal(test.body, body), "%d bytes have changed", len(test.body))
		require.Equal(t, test.packed, packed, "%d bytes", len(test.body))
		if packed {
			require.Less(t, len(sealed)-BlockHeaderSize, len(body)-len(body)/8)
		}
	}
}

// The bytes of a packed block are bounded on both sides before anything is allocated.
func TestBlock_PackedClaimsTooMuch(t *testing.T) {
	for _, test := range []struct {
		length, size uint64
		ok           bool
	}{
		{10, 10, true}, {10, MaxBlock, true}, {10, MaxBlock + 1, false}, {10, 1 << 40, false},
		{MaxBlock, MaxBlock - 1, true}, {MaxBlock + 1, MaxBlock, false},
		{MaxBlock + 1, MaxBlock + 1, true}, // a long entry, not packed
	} {
		b := make([]byte, BlockHeaderSize+test.length)
		h := BlockHeader{Kind: kindRecords, Records: 1, Size: test.size}
		h.put(b, packSalt)
		_, err := parseBlock(b, packSalt, 0)
		require.Equal(t, test.ok, err == nil, "%+v", test)
	}
}

// Names are not packed: a few bytes of a snapshot could be much of the Go heap.
func TestBlock_NamesAreNotPacked(t *testing.T) {
	text := bytes.Repeat([]byte("some text that repeats itself, "), 100)
	b := blockOf(text)
	sealed := b.Finish(BlockHeader{Kind: kindNames}, packSalt)
	require.Equal(t, text, sealed[BlockHeaderSize:])
	_, err := parseBlock(sealed, packSalt, 0)
	require.NoError(t, err)
	require.True(t, b.pack())
	for kind, want := range map[uint8]error{kindRecords: nil, kindNames: ErrCorrupt} {
		h := BlockHeader{Kind: kind, Size: uint64(len(text))}
		h.put(b.packed, packSalt)
		_, err = parseBlock(b.packed, packSalt, 0)
		require.ErrorIs(t, err, want)
	}
}

// A body that is not what its header says is damage, and costs no memory, whatever lengths
// it has in front.
func TestUnpack_Damage(t *testing.T) {
	text := bytes.Repeat([]byte("some text that repeats itself, "), 30)
	good := s2.Encode(nil, text)
	size := uint64(len(text))
	_, head := binary.Uvarint(good)
	claim := func(n uint64) []byte { return append(binary.AppendUvarint(nil, n), good[head:]...) }
	bodies := map[string][]byte{
		"a length of 1 GB":  claim(1 << 30),
		"a length of 1 EB":  claim(1 << 60),
		"one byte more":     claim(size + 1),
		"one byte less":     claim(size - 1),
		"an endless length": bytes.Repeat([]byte{0xff}, 20),
		"something behind":  append(bytes.Clone(good), 0),
		"a stream of S2":    []byte("\xff\x06\x00\x00S2sTwO"),
	}
	for n := range good {
		bodies[fmt.Sprint("cut after ", n)] = good[:n]
	}
	for name, body := range bodies {
		var to Buffers
		ref := Ref{At: 99, BlockHeader: BlockHeader{Length: uint64(len(body)), Size: size}}
		_, err := to.unpack(&ref, body)
		require.ErrorIs(t, err, ErrCorrupt, name)
		require.ErrorContains(t, err, "offset 99: unpack block 0: ", name)
		require.LessOrEqual(t, cap(to.unpacked), len(text), name)
	}
	for size := range size { // a header that says otherwise
		ref := Ref{BlockHeader: BlockHeader{Length: uint64(len(good)), Size: size}}
		_, err := new(Buffers).unpack(&ref, good)
		require.Equal(t, size != ref.Length, err != nil, "%d bytes", size)
	}
}

// After the first block, neither side allocates.
func TestBlock_PackingAllocatesNothing(t *testing.T) {
	text := bytes.Repeat([]byte("some text that repeats itself, "), 2000)
	var to Buffers
	b := blockOf(text)
	h := BlockHeader{Size: uint64(len(text))}
	require.True(t, b.pack())
	packed := bytes.Clone(b.packed[BlockHeaderSize:])
	h.Length = uint64(len(packed))
	ref := &Ref{BlockHeader: h}
	require.Zero(t, testing.AllocsPerRun(100, func() { b.Finish(ofRecords, packSalt) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = to.unpack(ref, packed) }))
}

// FuzzPack packs and unpacks any body, and unpacks it as if it were packed.
func FuzzPack(f *testing.F) {
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), uint16(40))
	f.Add([]byte{0xff, 0xff, 0xff, 0}, uint16(1000))
	f.Add(bytes.Repeat([]byte("abcd"), 300), uint16(1200))
	f.Add(s2.Encode(nil, make([]byte, 1000)), uint16(1000))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		var to Buffers
		body, _ := unseal(t, blockOf(b).Finish(ofRecords, packSalt), &to)
		require.True(t, bytes.Equal(b, body), "it has changed")
		if int(n) == len(b) {
			return // not packed
		}
		ref := Ref{BlockHeader: BlockHeader{Length: uint64(len(b)), Size: uint64(n)}}
		body, err := to.unpack(&ref, b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		require.Len(t, body, int(n))
	})
}
