package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Ref refers to a block of a snapshot.
type Ref struct {
	BlockHeader
	At   int64 // offset of its header
	Skip bool  // Each leaves out the records that were not read
}

// Contents are a snapshot that is being read.
type Contents struct {
	Header  Header
	Blocks  []Ref // after Scan
	Size    int64 // of what was read so far; in the end, of the snapshot with its end mark
	Damaged int   // defects that were passed over, and missing blocks

	r       io.ReaderAt
	size    int64 // of the file
	damage  error // the first defect that was passed over
	salvage bool
	seen    map[uint32]bool
	found   End // counts of the blocks so far
	ended   bool
}

// Scan goes from block to block of a snapshot of at most size bytes, and returns its contents. It
// reads the headers of the blocks, but not the bodies. It allocates in proportion to the blocks
// that it has found, whatever counts the snapshot claims.
//
// With salvage, damage is counted and is not an error, and Scan continues after it. It then fails
// only if no header is usable, or if the reader fails while the header is read.
func Scan(r io.ReaderAt, size int64, salvage bool) (*Contents, error) {
	c := &Contents{r: r, size: size, salvage: salvage, seen: map[uint32]bool{}}
	if err := c.readHeader(); err != nil {
		return nil, err
	}
	for !c.ended {
		at := c.Size
		ref, err := c.Next()
		switch {
		case err == nil:
			c.Blocks = append(c.Blocks, ref)
		case err == io.EOF:
		case !salvage:
			return nil, err
		case !errors.Is(err, ErrCorrupt) || at >= size:
			c.passOver(err)
			return c, nil // a reader that fails cannot be searched
		default:
			c.passOver(err)
			if c.Size == at { // else the block was there before
				c.Size = c.search(at + 1)
			}
		}
	}
	return c, nil
}

// NewStream returns the contents of a snapshot that is read from r, from its beginning to its end
// mark and not beyond, by Next and Body.
func NewStream(r io.Reader) (*Contents, error) {
	c := &Contents{r: &forward{r: r}, size: math.MaxInt64, seen: map[uint32]bool{}}
	return c, c.readHeader()
}

// Read returns the number of bytes that were read of a stream.
func (c *Contents) Read() int64 { return c.r.(*forward).at }

// forward makes a reader an io.ReaderAt for ascending offsets. It fails if the reader repeatedly
// returns neither bytes nor an error.
type forward struct {
	r     io.Reader
	at    int64
	empty int // such reads in a row
}

// mostEmpty is the number of such reads in a row that fails, as in package bufio.
const mostEmpty = 100

// ReadAt skips the bytes before offset at.
func (f *forward) ReadAt(b []byte, at int64) (n int, err error) {
	if _, err := io.CopyN(io.Discard, f, at-f.at); err != nil {
		return 0, err
	}
	return io.ReadFull(f, b)
}

func (f *forward) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	f.at += int64(n)
	if f.empty++; n != 0 || len(b) == 0 {
		f.empty = 0
	}
	if err == nil && f.empty == mostEmpty {
		err = io.ErrNoProgress
	}
	return n, err
}

// passOver counts damage that is not an error.
func (c *Contents) passOver(err error) {
	c.Damaged++
	c.noteDamage(err)
}

func (c *Contents) noteDamage(err error) {
	if c.damage == nil {
		c.damage = err
	}
}

// Damage returns the first defect that Scan and Load have passed over, or an error if bytes follow
// the end mark. It returns nil if the file is a complete snapshot.
func (c *Contents) Damage() error {
	if c.damage == nil && c.Size != c.size {
		return corrupt(c.Size, "%d bytes follow the end mark", c.size-c.Size)
	}
	return c.damage
}

// read reads n bytes at an offset into buf, or fewer at the end of the file. It allocates as the
// bytes arrive, because n may be wrong.
func (c *Contents) read(buf []byte, at int64, n uint64) ([]byte, error) {
	n = min(n, uint64(max(c.size-at, 0)))
	for buf = buf[:0]; uint64(len(buf)) < n; {
		have := len(buf)
		part := int(min(n-uint64(have), uint64(max(have, MaxBlock))))
		buf = slices.Grow(buf, part)[:have+part]
		got, err := c.r.ReadAt(buf[have:], at+int64(have))
		if got < part {
			if buf = buf[:have+got]; err == io.EOF || err == io.ErrUnexpectedEOF {
				err = nil // the file has become shorter
			}
			return buf, err
		}
	}
	return buf, nil
}

// readHeader reads the header, or its copy at the end.
func (c *Contents) readHeader() error {
	b, err := c.read(nil, 0, HeaderSize)
	if err != nil {
		return err
	}
	c.Size = HeaderSize
	c.Header, err = ParseHeader(b, 0)
	if err == nil || !c.salvage || !errors.Is(err, ErrCorrupt) || c.size < HeaderSize {
		return err
	}
	c.passOver(err)
	copied, err2 := c.read(nil, c.size-HeaderSize, HeaderSize)
	if err2 != nil {
		return err
	}
	if c.Header, err2 = ParseHeader(copied, c.size-HeaderSize); err2 != nil {
		return err
	}
	return nil
}

// Next returns the next block, or io.EOF at the end mark.
func (c *Contents) Next() (Ref, error) {
	at := c.Size
	b, err := c.read(nil, at, BlockHeaderSize)
	if err != nil {
		return Ref{}, err
	}
	if len(b) == 0 {
		return Ref{}, corrupt(at, "%d blocks, and no end mark", c.found.Blocks)
	}
	h, err := parseBlock(b, c.Header.Salt, at)
	if err != nil {
		return Ref{}, err
	}
	next := at + BlockHeaderSize + int64(h.Length)
	if next > c.size {
		return Ref{}, corrupt(at, "block %d of %d bytes, of which %d are there",
			h.ID, h.Length, c.size-at-BlockHeaderSize)
	}
	if h.Kind == kindEnd {
		return Ref{}, c.finish(h, at)
	}
	c.Size = next
	if c.seen[h.ID] {
		return Ref{}, corrupt(at, "block %d for the second time", h.ID)
	}
	c.seen[h.ID] = true
	c.found.Blocks++
	c.found.Records += uint64(h.Records)
	return Ref{BlockHeader: h, At: at}, nil
}

// finish compares the blocks found with the counts of the end mark.
func (c *Contents) finish(h BlockHeader, at int64) error {
	body, err := c.Body(&Ref{BlockHeader: h, At: at}, new(Buffers))
	if err != nil {
		return err
	}
	c.Size, c.ended = at+BlockHeaderSize+endSize, true
	end := parseEnd(body)
	if end.Blocks == c.found.Blocks && end.Records == c.found.Records {
		return io.EOF
	}
	err = corrupt(at, "%d blocks with %d records, but the end mark says %d with %d",
		c.found.Blocks, c.found.Records, end.Blocks, end.Records)
	if !c.salvage {
		return err
	}
	c.noteDamage(err)
	missing := uint64(1)
	if end.Blocks > c.found.Blocks {
		missing = min(end.Blocks-c.found.Blocks, uint64(c.size))
	}
	c.Damaged = max(c.Damaged, int(missing))
	return io.EOF
}

// search returns the offset of the next block from at on, or the end. A value may contain the magic
// number, but not a matching checksum. It reads little beyond the block, because there may be a
// defect every few bytes.
func (c *Contents) search(at int64) int64 {
	r := bufio.NewReaderSize(io.NewSectionReader(c.r, at, c.size-at), 1<<10)
	for ; ; at++ {
		b, err := r.Peek(BlockHeaderSize)
		if err != nil {
			return c.size
		}
		if string(b[:len(blockMagic)]) == blockMagic {
			if _, err := parseBlock(b, c.Header.Salt, at); err == nil {
				return at
			}
		}
		_, _ = r.Discard(1)
	}
}

// Buffers are those into which a block is read and unpacked.
type Buffers struct{ read, unpacked []byte }

// Body reads the body of a block, and checks and unpacks it. Of a stream, it is that of the block
// that Next has returned last.
func (c *Contents) Body(b *Ref, to *Buffers) (body []byte, err error) {
	if to.read, err = c.read(to.read, b.At+BlockHeaderSize, b.Length); err != nil {
		return nil, err
	}
	if n := uint64(len(to.read)); n < b.Length {
		return nil, corrupt(b.At, "block %d of %d bytes, of which %d are there", b.ID, b.Length, n)
	}
	if sum := sumOf(c.Header.Salt, to.read); sum != b.sum {
		return nil, corrupt(b.At, "checksum of block %d is %x, not %x", b.ID, sum, b.sum)
	}
	return to.unpack(b, to.read)
}

// unpack returns the content of a body, decompressed if it is packed.
func (b *Buffers) unpack(ref *Ref, body []byte) ([]byte, error) {
	if ref.Size == ref.Length {
		return body, nil
	}
	n, err := s2.DecodedLen(body)
	if err == nil && uint64(n) != ref.Size {
		err = fmt.Errorf("length is %d, not %d", n, ref.Size)
	}
	if err == nil {
		b.unpacked = slices.Grow(b.unpacked[:0], int(ref.Size)) // at most MaxBlock
		b.unpacked, err = s2.Decode(b.unpacked[:ref.Size], body)
	}
	if err != nil {
		return nil, corrupt(ref.At, "unpack block %d: %v", ref.ID, err)
	}
	return b.unpacked, nil
}
