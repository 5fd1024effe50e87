package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeader_RoundTrip(t *testing.T) {
	h := Header{
		Salt: 1, MaxBytes: 2, Entries: 3, Bytes: 4, TTL: 5, RefreshAhead: 6,
		Saved: time.UnixMilli(7), Policy: 1, HugePages: 2, Secret: [2]uint64{8, 9},
	}
	b := h.Append([]byte("before"))[6:]
	require.Len(t, b, HeaderSize)
	got, err := ParseHeader(b, 0)
	require.NoError(t, err)
	require.Equal(t, h, got)
	for n := range b {
		_, err := ParseHeader(b[:n], 0)
		require.ErrorIs(t, err, ErrCorrupt)
	}
}

func TestEntry_RoundTrip(t *testing.T) {
	for _, e := range []Entry{
		{}, {KeyLen: 1, ValueLen: 1}, {KeyLen: 127, ValueLen: 128, Freq: 3}, {KeyLen: maxKey},
		{KeyLen: 300, ValueLen: 70_000, Expiry: 1 << 40, Freq: 1}, {Negative: true, Expiry: 5},
		{KeyLen: 20, ValueLen: 8, Freq: 2, Spaced: true},
	} {
		b := AppendEntry(nil, e)
		at := len(b)
		b = append(b, make([]byte, e.KeyLen+e.ValueLen)...)
		require.LessOrEqual(t, len(b), EntrySize(e.KeyLen+e.ValueLen))
		got, skip, ok := ParseEntry(append(b, "more"...))
		require.True(t, ok)
		require.Equal(t, at, skip)
		require.Equal(t, e, got)
		for n := range min(len(b), 200) {
			_, _, ok := ParseEntry(b[:n])
			require.False(t, ok, "%+v of %d bytes", e, n)
		}
	}
	for _, n := range []uint64{3, 1 << 31, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 5} {
		for _, lengths := range [][2]uint64{{1, n}, {n, 1}} {
			b := binary.AppendUvarint([]byte{0}, lengths[0])
			b = append(binary.AppendUvarint(b, lengths[1]), "kv"...)
			_, _, ok := ParseEntry(b)
			require.False(t, ok, "lengths of %d", lengths)
		}
	}
}

// Whatever a pass wants, a cell is saved once: passes that look at other entries each time
// save each entry once, as long as its hash stays.
func TestCells_EachOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, entries := range []int{0, 1, 10, 5000, 1 << 30} {
		var c Cells
		c.Init(min(entries, 1<<16))
		hashes := make([]uint64, min(entries, 5000))
		for i := range hashes {
			hashes[i] = rnd.Uint64N(1 << HashBits)
		}
		times := make([]int, len(hashes))
		for pass := range 4 {
			byCell := map[uint64][]int{}
			for i, h := range hashes {
				require.LessOrEqual(t, c.Start(c.Of(h)), h)
				require.Equal(t, c.Of(h), c.Of(c.Start(c.Of(h))))
				byCell[c.Of(h)] = append(byCell[c.Of(h)], i)
			}
			for cell, in := range byCell {
				if c.Has(cell) || pass < 3 && rnd.IntN(2) == 0 {
					continue
				}
				c.Add(cell)
				for _, i := range in {
					times[i]++
				}
			}
		}
		for i := range times {
			require.Equal(t, 1, times[i])
		}
	}
	var once Cells
	once.Add(7)
	require.False(t, once.Has(7), "one pass remembers nothing")
	require.EqualValues(t, 7, once.Of(7))
}

// memory is a file.
type memory struct {
	mu   sync.Mutex
	b    []byte
	fail error
}

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil && at > 0 {
		return 0, m.fail
	}
	if need := int(at) + len(p); need > len(m.b) {
		m.b = append(m.b, make([]byte, need-len(m.b))...)
	}
	return copy(m.b[at:], p), nil
}

// saver saves entries of 1000 bytes, so many in each part, in steps of ten.
func saver(parts, entries int) *Saver {
	return &Saver{
		Context: context.Background(), Header: Header{Salt: 99}, Passes: AtOnce, Parts: parts,
		End:  uint64(entries),
		Size: func(int) int { return entries },
		Step: func(w *Worker) Step {
			return func(part int, at uint64, p Pass, saved *Cells) (uint64, error) {
				for range 10 {
					b := &w.Blocks[at%Ranks]
					from := len(b.Bytes)
					e := Entry{KeyLen: 8, ValueLen: 992}
					b.Bytes = fmt.Appendf(AppendEntry(b.Bytes, e), "%04d%04d", part, at)
					b.Bytes = append(b.Bytes, make([]byte, 992)...)
					b.Add(from, 0)
					w.Bytes += 1000
					at++
				}
				return at, nil
			}
		},
	}
}

func TestSaver_BlocksAreShort(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		m := &memory{}
		s := saver(50, 1000)
		s.To = m
		require.NoError(t, s.Run(workers))
		require.EqualValues(t, len(m.b), s.Written.Load())
		c, err := Scan(bytes.NewReader(m.b), int64(len(m.b)), false)
		require.NoError(t, err)
		seen, last := map[string]int{}, uint8(0)
		for _, b := range c.Blocks {
			require.LessOrEqual(t, b.Size+BlockHeaderSize, uint64(MaxBlock))
		}
		err = c.Load(1, 1<<30, 1<<30, func() func(*Ref, []byte) error {
			return func(b *Ref, body []byte) error {
				require.GreaterOrEqual(t, b.Rank, last, "low ranks come first")
				last = b.Rank
				return b.Each(body, func(key int, e Entry) { seen[string(body[key:key+8])]++ })
			}
		})
		require.NoError(t, err)
		require.Len(t, seen, 50_000)
		for _, n := range seen {
			require.Equal(t, 1, n)
		}
	}
}

func TestSaver_ErrorsEndIt(t *testing.T) {
	full := errors.New("full")
	for _, workers := range []int{1, 3} {
		s := saver(50, 1000)
		s.To = &memory{fail: full}
		require.ErrorIs(t, s.Run(workers), full)
		s = saver(50, 1000)
		s.To = &memory{}
		step := s.Step
		s.Step = func(w *Worker) Step {
			next := step(w)
			return func(part int, at uint64, p Pass, saved *Cells) (uint64, error) {
				if part == 30 && at == 500 {
					return 0, full
				}
				return next(part, at, p, saved)
			}
		}
		require.ErrorIs(t, s.Run(workers), full)
	}
}

// Of what does not fit, the entries that nobody has read are left out, the oldest first, of both
// rings.
func TestContents_ChooseTheHottest(t *testing.T) {
	block := func(rank uint8, unread uint64) Ref {
		return Ref{BlockHeader: BlockHeader{Rank: rank, Size: 860, Unread: unread, Entries: 10}}
	}
	for room, want := range map[uint64][]float64{ // a block takes 1,000 bytes, all take 8,000
		10_000: {0, 0, 0, 0, 0, 0}, 6400: {0, 0, 0, 0, 0, 0},
		4800: {0.5, 0, 0.75, 0, 0, 0}, // a quarter of 2,000 and of 6,000
		1600: {1, 0.5, 1, 1, 1, 1},    // three quarters; of main more was read
		0:    {1, 1, 1, 1, 1, 1},
	} {
		c := &Contents{Blocks: []Ref{block(0, 860), block(1, 860), block(4, 860), block(4, 860),
			block(6, 430), block(7, 0), block(8, 860), block(8, 0)}}
		c.choose(room)
		var got []float64
		for _, i := range []int{0, 1, 2, 4, 6, 7} {
			got = append(got, c.Blocks[i].Skip)
		}
		require.InDeltaSlice(t, want, got, 1e-9, "room %d", room)
	}
}

// What is left out of blocks is the part that it is to be, whatever the sizes, and also where
// each block has a single entry. What was read is always there.
func TestRef_LeavesOutAPart(t *testing.T) {
	type sums struct{ unread, read int }
	sum := func(ref *Ref, body []byte) (s sums) {
		require.NoError(t, ref.Each(body, func(_ int, e Entry) {
			if e.Freq == 0 {
				s.unread += e.ValueLen
			} else {
				s.read++
			}
		}))
		return s
	}
	for _, part := range []float64{0, 0.1, 0.5, 0.77, 1} {
		for _, perBlock := range []int{1, 7, 1000} {
			kept, all := 0, 0
			for id := 0; all < 100_000; id++ {
				var body []byte
				for i := range perBlock {
					n := 10 + (id+i)*37%50
					body = AppendEntry(body, Entry{ValueLen: n, Freq: i / 5 % 2})
					body = append(body, make([]byte, n)...)
				}
				ref := Ref{BlockHeader: BlockHeader{ID: uint32(id), Entries: uint32(perBlock)}}
				whole := sum(&ref, body)
				ref.Skip = part
				thinned := sum(&ref, body)
				require.Equal(t, whole.read, thinned.read)
				kept, all = kept+thinned.unread, all+whole.unread
			}
			require.InDelta(t, 1-part, float64(kept)/float64(all), 0.04, "%v, %d", part, perBlock)
		}
	}
}

// A reader that ends or fails anywhere.
func TestStream_ReaderFails(t *testing.T) {
	m := &memory{}
	s := saver(2, 100)
	s.To = m
	require.NoError(t, s.Run(1))
	broken := errors.New("broken")
	for n := 0; n < len(m.b); n += 97 {
		for _, end := range []error{io.EOF, broken} {
			r := io.MultiReader(bytes.NewReader(m.b[:n]), failing{end})
			st, err := NewStream(r, 1<<40)
			for err == nil {
				_, _, err = st.Next()
			}
			require.EqualValues(t, n, st.Read)
			if end == broken {
				require.ErrorIs(t, err, broken)
			} else {
				require.ErrorIs(t, err, ErrCorrupt)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzEntries holds ParseEntry to its word on any bytes.
func FuzzEntries(f *testing.F) {
	f.Add([]byte{0, 1, 1, 'k', 'v'})
	f.Add([]byte{4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, at, ok := ParseEntry(b)
		if !ok {
			return
		}
		require.LessOrEqual(t, at+e.KeyLen+e.ValueLen, len(b))
		require.GreaterOrEqual(t, at, MinEntry)
		again, _, ok := ParseEntry(append(AppendEntry(nil, e), b[at:]...))
		require.True(t, ok)
		require.Equal(t, e, again)
	})
}
