package fastcache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/golang/snappy"
)

// A snapshot of fastcache is a directory: metadata.bin contains the maximum number of chunks
// of a bucket, and each file data.N.bin is a snappy stream of buckets. A bucket consists of
// its number, the offset and generation of its next write, its map from hash to generation
// and offset, and its chunks. All numbers are 8 bytes, little-endian.

const metadataFile = "metadata.bin"

var dataFile = regexp.MustCompile(`^data\.\d+\.bin$`)

// loadFolder moves the entries of fastcache's snapshot into a new cache.
func loadFolder(folder string, maxBytes int) (*Cache, error) {
	capacity, err := folderCapacity(inside(folder, metadataFile))
	if err != nil {
		return nil, err
	}
	if err := checkCapacity(capacity, maxBytes); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	c := New(capacity)
	for _, entry := range files {
		if !dataFile.MatchString(entry.Name()) {
			continue
		}
		if err := c.loadBuckets(inside(folder, entry.Name())); err != nil {
			c.Reset()
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	c.joinBig()
	c.big.reset()
	c.inner.Load().loading = c.inner.Load().Stats()
	return c, nil
}

// openRegular opens a regular file for reading. Opening a pipe would wait for a writer.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

// folderCapacity reads the capacity in bytes from metadata.bin.
func folderCapacity(path string) (int, error) {
	var data []byte
	f, err := openRegular(path)
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, 9)) // one more than it has
	}
	if err != nil {
		return 0, err
	}
	if len(data) != 8 {
		return 0, fmt.Errorf("%s has %d bytes, must have 8", metadataFile, len(data))
	}
	chunks := binary.LittleEndian.Uint64(data)
	if chunks == 0 || chunks*minCapacity > maxCapacity || chunks >= maxBucketSize/chunkSize ||
		chunks*minCapacity > uint64(^uint(0)>>1) {
		return 0, fmt.Errorf("invalid maxBucketChunks=%d in %s", chunks, metadataFile)
	}
	return int(chunks) * minCapacity, nil
}

func (c *Cache) loadBuckets(path string) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := snappy.NewReader(f)
	for {
		var bucket uint64
		err := binary.Read(r, binary.LittleEndian, &bucket)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.loadBucket(r); err != nil {
			return fmt.Errorf("bucket %d: %w", bucket, err)
		}
	}
}

// place is where a bucket's map says that the record of a key's hash is.
type place struct{ hash, gen, offset uint64 }

// loadBucket sets the entries of the next bucket of r, the oldest first.
func (c *Cache) loadBucket(r io.Reader) error {
	var head struct{ Next, Gen, Places uint64 }
	if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
		return noEOF(err)
	}
	places, err := readPlaces(r, head.Places)
	if err != nil {
		return err
	}
	var chunks uint64
	if err := binary.Read(r, binary.LittleEndian, &chunks); err != nil {
		return noEOF(err)
	}
	data, err := readRecords(r, chunks, chunkSize)
	if err != nil {
		return err
	}
	places = slices.DeleteFunc(places, func(p place) bool {
		return !p.isLive(head.Next, head.Gen&maxGen)
	})
	slices.SortFunc(places, func(a, b place) int {
		older := cmp.Compare(boolInt(a.offset < head.Next), boolInt(b.offset < head.Next))
		return cmp.Or(older, cmp.Compare(a.offset, b.offset))
	})
	left := len(data)
	for _, p := range places {
		k, v, ok := p.record(data)
		if !ok {
			continue
		}
		if left -= 4 + len(k) + len(v); left < 0 {
			return errors.New("records overlap") // else 16 bytes of a map could cost 64 KB
		}
		c.Set(k, v)
	}
	return nil
}

func readPlaces(r io.Reader, n uint64) ([]place, error) {
	data, err := readRecords(r, n, 16)
	if err != nil {
		return nil, err
	}
	places := make([]place, 0, n)
	for ; len(data) > 0; data = data[16:] {
		at := binary.LittleEndian.Uint64(data[8:])
		places = append(places, place{
			hash:   binary.LittleEndian.Uint64(data),
			gen:    at >> 40,
			offset: at & (1<<40 - 1),
		})
	}
	return places, nil
}

// readRecords reads n times size bytes. It allocates as data arrives and does not trust n.
func readRecords(r io.Reader, n, size uint64) ([]byte, error) {
	if n > maxBucketSize/size {
		return nil, fmt.Errorf("%d times %d bytes, at most %d in all", n, size,
			uint64(maxBucketSize))
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(n*size)))
	if err == nil && uint64(len(data)) < n*size {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// maxGen is the last generation before 1.
const maxGen = 1<<24 - 1

// isLive reports whether the record at p has not been overwritten.
func (p place) isLive(next, gen uint64) bool {
	return p.gen == gen && p.offset < next ||
		(p.gen+1 == gen || p.gen == maxGen && gen == 1) && p.offset >= next
}

// record returns the key and the value at p, if there is a record of that hash.
func (p place) record(data []byte) (k, v []byte, ok bool) {
	if p.offset+4 > uint64(len(data)) {
		return nil, nil, false
	}
	data = data[p.offset:]
	keyLen, valueLen := int(binary.BigEndian.Uint16(data)), int(binary.BigEndian.Uint16(data[2:]))
	data = data[4:]
	if keyLen+valueLen > len(data) || xxhash.Sum64(data[:keyLen]) != p.hash {
		return nil, nil, false
	}
	return data[:keyLen], data[keyLen : keyLen+valueLen], true
}

// joinBig joins values that fastcache's SetBig stored: the hash and the length of the value
// under its key, and the parts under the hash and their index. All of them together have no more
// bytes than there are, or a few parts could be joined for each of many keys.
func (c *Cache) joinBig() {
	inner := c.inner.Load()
	var value []byte
	left := inner.Stats().BytesSize
	for k, meta := range inner.All() {
		if len(meta) != 16 {
			continue
		}
		hash, length := binary.BigEndian.Uint64(meta), binary.BigEndian.Uint64(meta[8:])
		if length > left {
			continue
		}
		value = c.appendParts(value[:0], hash, length)
		left -= min(left, uint64(len(value)))
		if uint64(len(value)) == length && xxhash.Sum64(value) == hash {
			c.SetBig(bytes.Clone(k), value)
		}
	}
}

// appendParts appends the parts of a value up to the first missing one.
func (c *Cache) appendParts(dst []byte, hash, length uint64) []byte {
	inner := c.inner.Load()
	for i := uint64(0); uint64(len(dst)) < length; i++ {
		key := binary.BigEndian.AppendUint64(nil, hash)
		n := len(dst)
		dst = inner.Get(dst, binary.BigEndian.AppendUint64(key, i))
		if len(dst) == n {
			break
		}
	}
	return dst
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
