//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
)

// After a crash of the machine a file has what it had at its last sync. Of what came later
// each page may be there or not, and so may the length. crashes records how a File uses its
// file, and opens what each crash may leave under another boot: that is empty, or what the
// last Close has left, and never an error.
type crashes struct {
	t       *testing.T
	path    string // of the images
	durable []byte // as it was at the last sync
	now     []byte
	closed  []byte // the values of the chunks that a Close may have left
	boot    uint64 // of the machine that is about to crash
	images  int
	whole   int // of them
}

const (
	anotherBoot = 99
	crashPage   = 4096
	crashSector = 512 // what a disk writes as a whole
)

// recorder is a file that tells crashes of what is done to it.
type recorder struct {
	*os.File
	*crashes
}

func (r *recorder) Fd() uintptr {
	r.look()
	return r.File.Fd()
}

func (r *recorder) Truncate(size int64) error {
	r.look()
	defer r.look()
	return r.File.Truncate(size)
}

// WriteAt may be cut after any sector. The file has its length before it is written.
func (r *recorder) WriteAt(b []byte, off int64) (int, error) {
	r.look()
	defer r.look()
	require.LessOrEqual(r.t, int(off)+len(b), len(r.now))
	for n := 0; n < len(b); n += crashSector {
		image := make([]byte, len(r.now))
		copy(image, r.durable)
		copy(image[off:], b[:n])
		r.open(image)
	}
	return r.File.WriteAt(b, off)
}

func (r *recorder) Sync() error {
	r.look()
	err := r.File.Sync()
	r.durable = r.now
	r.open(r.durable)
	return err
}

// look notes what is in the file, with the pages that were changed in memory, and tries what
// a crash may leave of that now.
func (r *recorder) look() {
	b, err := os.ReadFile(r.Name())
	require.NoError(r.t, err)
	if bytes.Equal(b, r.now) {
		return
	}
	r.now = b
	old, now := make([]byte, len(b)), bytes.Clone(b)
	copy(old, r.durable)
	r.open(old)
	r.open(now)
	r.open(now[:min(len(now), len(r.durable))])
	for at := 0; at < len(b); at += crashPage {
		page := [2][]byte{old[at:min(at+crashPage, len(b))], now[at:min(at+crashPage, len(b))]}
		if bytes.Equal(page[0], page[1]) {
			continue
		}
		for _, image := range [][]byte{bytes.Clone(old), bytes.Clone(now)} {
			other := page[1]
			if bytes.Equal(image[at:][:len(other)], other) {
				other = page[0]
			}
			copy(image[at:], other)
			r.open(image)
		}
	}
}

// open opens what a crash of the process has left, and then what one of the machine has.
func (c *crashes) open(image []byte) {
	c.images++
	c.openUnder(c.boot, image).Release()
	f := c.openUnder(anotherBoot, image)
	defer f.Release()
	if f.IsNew {
		return
	}
	c.whole++
	require.NotEmpty(c.t, f.Rings.extents)
	value := f.value()
	require.Contains(c.t, c.closed, value)
	for _, e := range f.Rings.extents {
		require.Equal(c.t, bytes.Repeat([]byte{value}, len(e.chunks)), e.chunks, "of two times")
	}
}

func (c *crashes) openUnder(boot uint64, image []byte) *File {
	require.NoError(c.t, os.WriteFile(c.path, image, 0o600))
	file, err := os.OpenFile(c.path, os.O_RDWR, 0)
	require.NoError(c.t, err)
	f, h, err := open(file, boot, freshHeader(), false)
	if err == nil {
		err = f.Use(&h)
	}
	require.NoError(c.t, err, "image %d of %d bytes, boot %d", c.images, len(image), boot)
	return f
}

func freshHeader() Header {
	return Header{ChunkSize: 2048, Buckets: 4, PosBits: 36, MaxBytes: 1 << 20}
}

// value returns the byte that fill has written.
func (f *File) value() byte { return f.Rings.extents[0].chunks[0] }

// fill writes a byte to all chunks.
func (f *File) fill(value byte) {
	for _, e := range f.Rings.extents {
		for i := range e.chunks {
			e.chunks[i] = value
		}
	}
}

// The file of a cache is whole or empty after a crash of the machine, whenever that comes: while
// the file is made, grows, is written, closed, opened again, and made anew.
func TestStore_CrashOfTheMachine(t *testing.T) {
	dir := t.TempDir()
	images := dir
	if inMemory, err := os.MkdirTemp("/dev/shm", "ringfile"); err == nil { // where a sync is quick
		images = inMemory
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(images)) })
	}
	c := &crashes{t: t, path: filepath.Join(images, "image")}
	path := filepath.Join(dir, "cache")
	for life, boot := range []uint64{1, 1, 2, 3, 3} {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		r := &recorder{file, c}
		c.boot = boot
		f, h, err := open(r, boot, freshHeader(), false)
		require.NoError(t, err)
		require.NoError(t, f.Use(&h))
		require.Equal(t, life == 0 || life == 3, f.IsNew, "life %d", life)
		_, err = f.Rings.Map(16 * 2048)
		require.NoError(t, err)
		r.look()
		value := byte(life + 1)
		f.fill(value)
		r.look()
		if life == 2 { // the machine stops, with all that was written
			c.closed = nil
			f.Release()
			continue
		}
		c.closed = append(c.closed, value)
		require.NoError(t, f.Close(clock.Mark{}, true))
		c.closed = []byte{value}
		before := c.whole
		c.open(c.durable)
		require.Equal(t, before+1, c.whole, "after Close it is there")
	}
	t.Logf("%d images, %d of them whole", c.images, c.whole)
	require.Greater(t, c.images, 500)
	require.Greater(t, c.whole, 20)
}
