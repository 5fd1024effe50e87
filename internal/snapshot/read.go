package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
)

// Ref refers to a block of a snapshot that can be read at any offset.
type Ref struct {
	BlockHeader
	At   int64   // offset of its header
	Skip float64 // fraction of its unread entries, by bytes, that Each leaves out
}

// Contents describe what a snapshot holds, with only the headers of its blocks.
type Contents struct {
	Header  Header
	Blocks  []Ref
	Size    int64 // of the snapshot, end mark included
	Damaged int   // defects that were passed over, and missing blocks

	r       io.ReaderAt
	size    int64 // of the file
	damage  error // the first defect that was passed over
	salvage bool
	seen    map[uint32]bool
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
	at := int64(HeaderSize)
	for !c.ended {
		next, err := c.take(at)
		switch {
		case err == nil:
		case !salvage:
			return nil, err
		case !errors.Is(err, ErrCorrupt):
			c.passOver(err)
			return c, nil // a reader that fails cannot be searched
		case at >= size:
			c.passOver(err)
			return c, nil
		default:
			c.passOver(err)
			next = c.search(at + 1)
		}
		at = next
	}
	c.Size = at
	return c, nil
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

// read returns n bytes at an offset, or fewer at the end of the file.
func (c *Contents) read(at int64, n int) ([]byte, error) {
	n = int(max(0, min(int64(n), c.size-at)))
	b := make([]byte, n)
	got, err := c.r.ReadAt(b, at)
	if got == n || err == io.EOF {
		err = nil // the file has become shorter
	}
	return b[:got], err
}

// readHeader reads the header, or its copy at the end.
func (c *Contents) readHeader() error {
	b, err := c.read(0, HeaderSize)
	if err != nil {
		return err
	}
	c.Header, err = ParseHeader(b, 0)
	if err == nil || !c.salvage || !errors.Is(err, ErrCorrupt) || c.size < HeaderSize {
		return err
	}
	c.passOver(err)
	copied, err2 := c.read(c.size-HeaderSize, HeaderSize)
	if err2 != nil {
		return err
	}
	if c.Header, err2 = ParseHeader(copied, c.size-HeaderSize); err2 != nil {
		return err
	}
	return nil
}

// take adds the block at an offset, and returns the offset of the next one.
func (c *Contents) take(at int64) (next int64, err error) {
	b, err := c.read(at, BlockHeaderSize)
	if err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return 0, corrupt(at, "%d blocks, and no end mark", len(c.Blocks))
	}
	h, err := parseBlock(b, c.Header.Salt, at)
	if err != nil {
		return 0, err
	}
	next = at + BlockHeaderSize + int64(h.Length)
	if next > c.size {
		return 0, corrupt(at, "block %d of %d bytes, of which %d are there",
			h.ID, h.Length, c.size-at-BlockHeaderSize)
	}
	if h.Kind == kindEnd {
		return next, c.finish(h, at)
	}
	if c.seen[h.ID] {
		err := corrupt(at, "block %d for the second time", h.ID)
		if c.salvage {
			c.passOver(err)
			return next, nil
		}
		return 0, err
	}
	c.seen[h.ID] = true
	c.Blocks = append(c.Blocks, Ref{BlockHeader: h, At: at})
	return next, nil
}

// finish compares the blocks found with the counts of the end mark.
func (c *Contents) finish(h BlockHeader, at int64) error {
	body, err := c.read(at+BlockHeaderSize, endSize)
	if err != nil {
		return err
	}
	if err := h.Check(body, c.Header.Salt, at); err != nil {
		return err
	}
	c.ended = true
	var t tally
	for i := range c.Blocks {
		t.add(&c.Blocks[i].BlockHeader)
	}
	end := parseEnd(body)
	if err := t.compare(end, at); err != nil {
		if !c.salvage {
			return err
		}
		c.noteDamage(err)
		if end.Blocks > t.blocks {
			c.Damaged = max(c.Damaged, int(min(end.Blocks-t.blocks, uint64(c.size))))
		} else {
			c.Damaged = max(c.Damaged, 1)
		}
	}
	return nil
}

// tally counts blocks and their entries.
type tally struct{ blocks, entries uint64 }

func (t *tally) add(h *BlockHeader) {
	t.blocks++
	t.entries += uint64(h.Entries)
}

// compare returns an error if the end mark at an offset has other counts.
func (t *tally) compare(e End, at int64) error {
	if t.blocks != e.Blocks || t.entries != e.Entries {
		return corrupt(at, "%d blocks with %d entries, but the end mark says %d with %d",
			t.blocks, t.entries, e.Blocks, e.Entries)
	}
	return nil
}

// searchStep is the number of bytes that a search examines at once.
const searchStep = 64 << 10

// search returns the offset of the next block from at on, or the end. A value may contain the magic
// number, but not a matching checksum.
func (c *Contents) search(at int64) int64 {
	for at < c.size {
		b, err := c.read(at, searchStep+BlockHeaderSize)
		if err != nil || len(b) < BlockHeaderSize {
			return c.size
		}
		for i := 0; ; i++ {
			n := bytes.Index(b[i:], []byte(blockMagic))
			if n < 0 {
				break
			}
			if i += n; len(b)-i < BlockHeaderSize {
				break // it is examined in the next step
			}
			if _, err := parseBlock(b[i:], c.Header.Salt, 0); err == nil {
				return at + int64(i)
			}
		}
		at += int64(len(b)) - BlockHeaderSize + 1
	}
	return c.size
}

// buffers are those into which a block is read and unpacked.
type buffers struct{ read, unpacked []byte }

// resize returns buf with n bytes of any content.
func resize(buf []byte, n uint64) []byte {
	if uint64(cap(buf)) < n {
		return make([]byte, n)
	}
	return buf[:n]
}

// unpack returns the content of a body, decompressed if it is packed.
func (b *buffers) unpack(ref *Ref, body []byte) ([]byte, error) {
	if ref.Size == ref.Length {
		return body, nil
	}
	n, err := s2.DecodedLen(body)
	if err == nil && uint64(n) != ref.Size {
		err = fmt.Errorf("length is %d, not %d", n, ref.Size)
	}
	if err == nil {
		b.unpacked = resize(b.unpacked, ref.Size)     // at most MaxBlock
		b.unpacked, err = s2.Decode(b.unpacked, body) // allocates nothing for that length
	}
	if err != nil {
		return nil, corrupt(ref.At, "unpack block %d: %v", ref.ID, err)
	}
	return b.unpacked, nil
}

// body reads the body of a block, and checks and unpacks it.
func (c *Contents) body(b *Ref, to *buffers) ([]byte, error) {
	to.read = resize(to.read, b.Length) // no more than the file has
	n, err := c.r.ReadAt(to.read, b.At+BlockHeaderSize)
	if n < len(to.read) {
		if err == io.EOF {
			err = corrupt(b.At, "block %d of %d bytes, of which %d are there", b.ID, b.Length, n)
		}
		return nil, err
	}
	if err := b.Check(to.read, c.Header.Salt, b.At); err != nil {
		return nil, err
	}
	return to.unpack(b, to.read)
}

// Stream is a snapshot that is read from its beginning to its end mark, and not beyond.
type Stream struct {
	Header Header
	Read   int64 // bytes so far

	r    io.Reader
	most uint64 // maximum length of a block; longer ones are skipped
	buf  []byte
	more buffers
	seen map[uint32]bool
	tally
}

// NewStream reads the header.
func NewStream(r io.Reader, most uint64) (*Stream, error) {
	s := &Stream{r: &progressing{r: r}, most: most, seen: map[uint32]bool{}}
	b, err := s.next(HeaderSize)
	if err == nil || errors.Is(err, ErrCorrupt) {
		s.Header, err = ParseHeader(b, 0)
	}
	return s, err
}

// progressing reads from a reader that may return neither bytes nor an error, and fails if it does
// so repeatedly.
type progressing struct {
	r     io.Reader
	empty int // such reads in a row
}

// mostEmpty is the number of such reads in a row that fails, as in package bufio.
const mostEmpty = 100

func (p *progressing) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if n != 0 || err != nil || len(b) == 0 {
		p.empty = 0
		return n, err
	}
	if p.empty++; p.empty == mostEmpty {
		return 0, io.ErrNoProgress
	}
	return 0, nil
}

// next reads n bytes into the buffer. It allocates as the bytes arrive, because n may be wrong.
func (s *Stream) next(n uint64) ([]byte, error) {
	s.buf = s.buf[:0]
	for from := s.Read; n > 0; {
		part := int(min(n, MaxBlock, max(4096, uint64(len(s.buf)))))
		have := len(s.buf)
		s.buf = append(s.buf, make([]byte, part)...)
		got, err := io.ReadFull(s.r, s.buf[have:])
		s.Read += int64(got)
		s.buf = s.buf[:have+got]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return s.buf, corrupt(from, "%d more bytes are missing", n-uint64(got))
		}
		if err != nil {
			return s.buf, err
		}
		n -= uint64(got)
	}
	return s.buf, nil
}

// Next returns the next block and its body, which is valid until the next call. After the last
// block it returns io.EOF.
func (s *Stream) Next() (Ref, []byte, error) {
	at := s.Read
	b, err := s.next(BlockHeaderSize)
	if err != nil {
		return Ref{}, nil, err
	}
	h, err := parseBlock(b, s.Header.Salt, at)
	if err != nil {
		return Ref{}, nil, err
	}
	if h.Length > s.most {
		return s.skip(&h, at)
	}
	body, err := s.next(h.Length)
	if err == nil {
		err = h.Check(body, s.Header.Salt, at)
	}
	if err != nil {
		return Ref{}, nil, err
	}
	if h.Kind == kindEnd {
		if err = s.compare(parseEnd(body), at); err == nil {
			err = io.EOF
		}
		return Ref{}, nil, err
	}
	if s.seen[h.ID] {
		return Ref{}, nil, corrupt(at, "block %d for the second time", h.ID)
	}
	s.seen[h.ID] = true
	s.add(&h)
	ref := Ref{BlockHeader: h, At: at}
	body, err = s.more.unpack(&ref, body)
	return ref, body, err
}

// skip reads past a block that is too long for the cache, and returns it without its body.
func (s *Stream) skip(h *BlockHeader, at int64) (Ref, []byte, error) {
	n, err := io.CopyN(io.Discard, s.r, int64(h.Length))
	s.Read += n
	if err == io.EOF {
		err = corrupt(at, "%d more bytes are missing", int64(h.Length)-n)
	}
	if err != nil {
		return Ref{}, nil, err
	}
	if s.seen[h.ID] {
		return Ref{}, nil, corrupt(at, "block %d for the second time", h.ID)
	}
	s.seen[h.ID] = true
	s.add(h)
	ref := Ref{BlockHeader: *h, At: at}
	ref.Entries = 0
	return ref, nil, nil
}

// Each calls fn with each entry of a block's body that is not to be left out, and the offset of its
// key in the body. It returns an error if the body does not consist of exactly as many entries as
// the block's header says.
func (b *Ref) Each(body []byte, fn func(key int, e Entry)) error {
	n, thin := uint32(0), b.thinning()
	for at := 0; at < len(body); n++ {
		e, skip, ok := ParseEntry(body[at:])
		if !ok {
			return corrupt(b.At, "block %d has no valid entry %d at byte %d", b.ID, n, at)
		}
		size := skip + e.KeyLen + e.ValueLen
		if e.Freq > 0 || !thin.leavesOut(size) {
			fn(at+skip, e)
		}
		at += size
	}
	if n != b.Entries {
		return corrupt(b.At, "block %d has %d entries, not %d", b.ID, n, b.Entries)
	}
	return nil
}
