package persist

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
)

// forgeDense makes a snapshot of blocks that are as long as a packed one may be, and consist of
// copies of a record, so that a few bytes of the file are many records.
func forgeDense(h snapshot.Header, blocks int, kind byte, record []byte) []byte {
	n := (snapshot.MaxBlock - 20) * 4 / (4*len(record) + 1)
	body := forgeRun(1, uint32(n), uint64(n*len(record)), bytes.Repeat(record, n)...)
	body = append(body, make([]byte, (n+3)/4)...)
	b := h.Append(nil)
	for i := range blocks {
		var block snapshot.Block
		block.Reset()
		block.Bytes, block.Records = append(block.Bytes, body...), n
		of := snapshot.BlockHeader{Kind: kind, Lane: uint16(i), ID: uint32(i)}
		b = append(b, block.Finish(of, h.Salt)...)
	}
	end := snapshot.End{Blocks: uint64(blocks), Records: uint64(blocks * n)}
	return end.Append(b, &h)
}

// mostHeap bounds what the load of a snapshot of n bytes allocates, in each of two workers: the
// buffers for a block, and in proportion to the length of the snapshot.
func mostHeap(n int) uint64 { return 8*snapshot.MaxBlock + 16*uint64(n) }

// Records that are packed well cost as little memory as others: a few kilobytes of a file are
// millions of them.
func TestSnapshot_DenseBlocksCostTheirLength(t *testing.T) {
	const records, names, never = 1, 3, "\xff\xff\xff\xff"
	// Else variables escape, or the cache's own memory counts too.
	counts := chunk.OffHeap && !ringtest.RaceEnabled
	h := snapshot.Header{MaxBytes: ringtest.MinBytes}
	generation := binary.LittleEndian.AppendUint64(nil, 7)
	for name, of := range map[string]struct {
		kind   byte
		record []byte
	}{
		"empty":    {records, []byte{0, 0, 0}},
		"short":    {records, []byte{1, 0, 0, 'k'}},
		"timed":    {records, []byte{0x61, 0, 0, 9, 0, 0, 0, 'k'}},
		"negative": {records, append([]byte{0x45, 1, 0, 0, 0, 0, 0}, never+"k"...)},
		"idle":     {records, append([]byte{0x42, 1, 0, 0, 0, 0, 0}, never+never+"k"...)},
		"spaced":   {records, append([]byte{8, 0, 0x80}, generation...)},
		"names":    {names, append([]byte{8, 0, 0}, generation...)},
	} {
		_, ok := record.Plain.Parse(of.record)
		require.True(t, ok, name)
		b := forgeDense(h, 3, of.kind, of.record)
		require.Equal(t, of.kind == records, len(b) < 400<<10, name) // names are not packed
		path := ringtest.WriteFile(t, b)
		c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
		used := ringtest.Allocated(func() {
			_, err := c.ReadSnapshot(bytes.NewReader(b))
			require.NoError(t, err, name)
		})
		if counts {
			require.Less(t, used, mostHeap(len(b)), name)
		}
		require.NoError(t, ringtest.Validate(c), name)
		require.LessOrEqual(t, c.Len(), 1, name)
		var d *ringcache.Cache
		var report ringcache.LoadReport
		used = ringtest.Allocated(func() {
			var err error
			d, report, err = ringcache.Load(path, ringcache.Options{MaxBytes: ringtest.MinBytes})
			require.NoError(t, err, name)
		})
		require.NoError(t, report.Err, name)
		if counts {
			require.Less(t, used, mostHeap(len(b)), name)
		}
		require.LessOrEqual(t, d.Len(), 1, name)
		ringtest.CloseCache(t, d)
	}
}

// forgeNames makes a snapshot of blocks of namespaces, whose names have n bytes and are as alike as
// they can be.
func forgeNames(blocks, names, n int) []byte {
	var h snapshot.Header
	b, of := h.Append(nil), snapshot.BlockHeader{Kind: 3}
	for i := range blocks {
		var all []byte
		for j := range names {
			var header [record.MaxHeader]byte
			all = append(all, record.Plain.Put(&header, record.Value, 8, n, record.Times{})...)
			all = append(all, make([]byte, 8+n-4)...)
			all = binary.BigEndian.AppendUint32(all, uint32(i*names+j))
		}
		var block snapshot.Block
		block.Reset()
		block.Bytes = append(block.Bytes, forgeRun(1, uint32(names), uint64(len(all)), all...)...)
		block.Bytes, block.Records = append(block.Bytes, make([]byte, (names+3)/4)...), names
		of.ID = uint32(i)
		b = append(b, block.Finish(of, h.Salt)...)
	}
	end := snapshot.End{Blocks: uint64(blocks), Records: uint64(blocks * names)}
	return end.Append(b, &h)
}

// Names of namespaces take memory of the Go heap in proportion to the snapshot, be they long or
// short.
func TestSnapshot_NamesCostTheirLength(t *testing.T) {
	for _, size := range []struct{ blocks, names, n int }{
		{24, 1, snapshot.MaxBlock - 100}, {2, 50_000, 4},
	} {
		b := forgeNames(size.blocks, size.names, size.n)
		c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
		used := ringtest.Allocated(func() {
			_, err := c.ReadSnapshot(bytes.NewReader(b))
			require.NoError(t, err)
		})
		require.Len(t, maps.Collect(c.Namespaces()), size.blocks*size.names)
		t.Logf("%d bytes of the heap, %d of the snapshot", used, len(b))
		if !ringtest.RaceEnabled { // which lets variables escape
			require.Less(t, used, 8*snapshot.MaxBlock+32*uint64(len(b)))
		}
	}
}

// A long value is copied in parts, and makes a save allocate what its comment says.
func TestSnapshot_LongValueCostsTwiceItsLength(t *testing.T) {
	const n = 16 << 20
	c := ringtest.MustCache(t, ringtest.Default(16*n))
	require.NoError(t, c.Set([]byte("long"), make([]byte, n)))
	used := ringtest.Allocated(func() {
		_, err := c.WriteSnapshot(io.Discard)
		require.NoError(t, err)
	})
	if !ringtest.RaceEnabled { // which makes append allocate what it appends
		require.LessOrEqual(t, used, uint64(2*n+4<<20))
	}
}
