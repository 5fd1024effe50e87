package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

func TestHeader_RoundTrip(t *testing.T) {
	h := Header{
		Salt: 1, MaxBytes: 2, Entries: 3, TTL: 5, RefreshAhead: 6, Program: 12, Idle: 13,
		Mark:   clock.Mark{Age: 4, At: clock.Moment{Wall: time.UnixMicro(7008), Boot: 10, ID: 11}},
		Policy: 1, HugePages: 2, Secret: [2]uint64{8, 9},
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

// recordOf returns a plain record of a key and a value.
func recordOf(key, value string) []byte {
	var buf [record.MaxHeader]byte
	b := record.Plain.Put(&buf, record.Value, len(key), len(value), record.Times{})
	return append(append(bytes.Clone(b), key...), value...)
}

// fillBlock returns the body of a block of records whose rings and frequencies vary.
func fillBlock(t testing.TB, n int, size func(i int) int) (*Ref, []byte, []Record) {
	t.Helper()
	var b Block
	b.Reset()
	var want []Record
	for i := range n {
		ring := policy.Ring(i / 7 % 2)
		b.Begin(ring)
		from := len(b.Bytes)
		b.Bytes = append(b.Bytes, recordOf(fmt.Sprint(i), string(make([]byte, size(i))))...)
		b.End(i / 5 % 4)
		hd, ok := record.Plain.Parse(b.Bytes[from:])
		require.True(t, ok)
		want = append(want, Record{hd, from - BlockHeaderSize, ring, i / 5 % 4})
	}
	body := bytes.Clone(b.Finish(BlockHeader{Kind: kindRecords}, 1))
	h, err := parseBlock(body, 1, 0)
	require.NoError(t, err)
	ref := &Ref{BlockHeader: h}
	all, err := new(Buffers).unpack(ref, body[BlockHeaderSize:])
	require.NoError(t, err)
	return ref, bytes.Clone(all), want
}

func TestBlock_RoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 13, 1000} {
		ref, body, want := fillBlock(t, n, func(i int) int { return i * 37 % 200 })
		require.EqualValues(t, n, ref.Records)
		var got []Record
		require.NoError(t, ref.Each(body, func(r *Record) error {
			got = append(got, *r)
			return nil
		}))
		require.Equal(t, want, got)
		for _, size := range []int{1, 3, n, n + 1} {
			got = got[:0]
			require.NoError(t, ref.Batches(body, make([]Record, size), func(rs []Record) error {
				require.True(t, len(rs) == size || len(got)+len(rs) == n)
				got = append(got, rs...)
				return nil
			}))
			require.Equal(t, want, got)
		}
		for cut := range min(len(body), 300) {
			err := ref.Each(body[:cut], func(*Record) error { return nil })
			require.ErrorIs(t, err, ErrCorrupt, cut)
		}
	}
}

// memory is a file.
type memory struct {
	b    []byte
	fail error
}

func (m *memory) Write(p []byte) (int, error) {
	if m.fail != nil && len(m.b) > 0 {
		return 0, m.fail
	}
	m.b = append(m.b, p...)
	return len(p), nil
}

// saver saves records of about 1000 bytes, so many in each part, in steps of ten.
func saver(parts, records int) *Saver {
	at := make([]int, parts)
	return &Saver{
		Context: context.Background(), Header: Header{Salt: 99}, Parts: parts,
		Names: func(*Worker) error { return nil },
		Walker: func(w *Worker) Step {
			return func(part, quarter int) (bool, error) {
				if err := w.Reserve(11_000); err != nil {
					return false, err
				}
				for range min(10, records*quarter/Quarters-at[part]) {
					w.Begin(policy.Ring(at[part] % 2))
					key := fmt.Sprintf("%04d%04d", part, at[part])
					w.Bytes = append(w.Bytes, recordOf(key, string(make([]byte, 989)))...)
					w.End(0)
					w.Saved += 1000
					at[part]++
				}
				return at[part] == records*quarter/Quarters, nil
			}
		},
	}
}

// Blocks are not too long. Each worker of a load gets the records of a part in their order.
func TestSaver_BlocksAreShort(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		m := &memory{}
		s := saver(50, 1000)
		s.To = m
		require.NoError(t, s.Run(workers))
		require.EqualValues(t, len(m.b), s.Written)
		c, err := Scan(bytes.NewReader(m.b), int64(len(m.b)), false)
		require.NoError(t, err)
		for _, b := range c.Blocks {
			require.LessOrEqual(t, b.Size, uint64(MaxBlock))
		}
		var mu sync.Mutex
		all := 0
		err = c.Load(workers, 1<<30, 1<<30, func() func(*Ref, []byte) error {
			last := map[string]string{}
			return func(b *Ref, body []byte) error {
				return b.Each(body, func(r *Record) error {
					k := string(body[r.At+r.Size:][:8])
					require.Greater(t, k[4:], last[k[:4]])
					last[k[:4]] = k[4:]
					mu.Lock()
					defer mu.Unlock()
					all++
					return nil
				})
			}
		})
		require.NoError(t, err)
		require.Equal(t, 50_000, all)
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
		walker := s.Walker
		s.Walker = func(w *Worker) Step {
			next, steps := walker(w), 0
			return func(part, quarter int) (bool, error) {
				if steps++; part == 30 && quarter == 3 {
					return false, full
				}
				return next(part, quarter)
			}
		}
		require.ErrorIs(t, s.Run(workers), full)
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
			st, err := NewStream(r)
			for err == nil {
				var ref Ref
				if ref, err = st.Next(); err == nil {
					_, err = st.Body(&ref, new(Buffers))
				}
			}
			require.EqualValues(t, n, st.Read())
			if end == broken {
				require.ErrorIs(t, err, broken)
			} else {
				require.ErrorIs(t, err, ErrCorrupt)
			}
		}
	}
}

// counting counts the bytes that are read.
type counting struct {
	*bytes.Reader
	n int
}

func (c *counting) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(b, at)
	c.n += n
	return n, err
}

// A file that has a defect every few bytes is read a number of times that does not grow with it.
func TestScan_ManyDefects(t *testing.T) {
	const blocks = 5000
	h := Header{Salt: 5}
	b := h.Append(nil)
	for i := range blocks {
		block := make([]byte, BlockHeaderSize)
		of := BlockHeader{Kind: kindRecords, ID: uint32(i)}
		of.put(block, h.Salt)
		b = append(append(b, block...), 'x')
	}
	r := &counting{Reader: bytes.NewReader(b)}
	c, err := Scan(r, int64(len(b)), true)
	require.NoError(t, err)
	require.Len(t, c.Blocks, blocks)
	require.Less(t, r.n, 32*len(b))
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzRuns checks that for any bytes, Each passes on only records within the body, and as many as
// the block has.
func FuzzRuns(f *testing.F) {
	_, body, _ := fillBlock(f, 20, func(i int) int { return i })
	f.Add(body, uint32(20), byte(kindRecords))
	f.Add([]byte("0"), uint32(84), byte(kindSizes)) // which has no records
	f.Add([]byte{0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint32(1), byte(kindNames))
	f.Fuzz(func(t *testing.T, body []byte, records uint32, kind byte) {
		ref := Ref{BlockHeader: BlockHeader{Kind: kind, Records: records}}
		n, last := uint32(0), 0
		err := ref.Each(body, func(r *Record) error {
			n++
			require.LessOrEqual(t, int(n)*record.ShortHeader, len(body))
			require.GreaterOrEqual(t, r.At, last)
			last = r.At + r.Total()
			require.LessOrEqual(t, last, len(body))
			require.False(t, r.Dead)
			return nil
		})
		switch {
		case ref.IsSizes():
			require.Zero(t, n)
		case err == nil:
			require.Equal(t, records, n)
		default:
			require.ErrorIs(t, err, ErrCorrupt)
		}
	})
}
