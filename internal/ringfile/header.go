package ringfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/osfile"
)

// Version is the version of the format that this package reads and writes.
const Version = 1

const (
	Magic      = "ringfile" // the first 8 bytes of a file
	headerSize = 128
	sumAt      = headerSize - 8
)

// Header describes the file. It is written once, when the file is made, in the machine's byte
// order.
type Header struct {
	Order     uint32 // native: a machine of the other byte order reads another number
	Version   uint32
	ChunkSize uint32
	Buckets   uint32 // small buckets
	PosBits   uint32
	MaxBytes  int64
	Seed      [2]uint64 // the hash secret
	Program   uint64    // version of the entries, chosen by the program
}

const native = 0x01020304

// Errors of ReadHeader after which the file may be emptied.
var (
	errBlank   = errors.New("the file is blank")
	errDamaged = errors.New("the header is damaged")
)

// Put writes h to a head, which is all zeros.
func (h *Header) Put(head []byte) {
	h.Order, h.Version = native, Version
	b, _ := binary.Append([]byte(Magic), binary.NativeEndian, h)
	copy(head, b)
	binary.NativeEndian.PutUint64(head[sumAt:], xxhash.Sum64(head[:sumAt]))
}

// ReadHeader reads the header of a file from its head, or from all that the file has of one. A file
// is empty, or gets the length of its head at once and, after that, its header: it returns errBlank
// if the process or the machine died in between.
func ReadHeader(head []byte) (h Header, err error) {
	if n := len(head); (n == 0 || n == HeadSize) && len(bytes.Trim(head, "\x00")) == 0 {
		return h, errBlank
	}
	if len(head) < headerSize || !bytes.HasPrefix(head, []byte(Magic)) {
		return h, osfile.ErrForeign
	}
	_, _ = binary.Decode(head[len(Magic):], binary.NativeEndian, &h) // long enough
	switch {
	case h.Order != native:
		return h, osfile.ErrForeign
	case h.Version > Version:
		return h, fmt.Errorf("%w: %d, at most %d", osfile.ErrVersion, h.Version, Version)
	case binary.NativeEndian.Uint64(head[sumAt:]) != xxhash.Sum64(head[:sumAt]),
		h.ChunkSize&(h.ChunkSize-1) != 0, h.ChunkSize < 64, h.ChunkSize > chunk.MaxSize:
		return h, errDamaged
	}
	return h, nil
}
