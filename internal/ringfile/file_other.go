//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package ringfile

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
)

// File is the open file of a cache. This system does not support such files.
type File struct {
	Rings     *Rings
	IsNew     bool
	Discarded bool
	Last      clock.Mark
}

// Open returns an error that is errors.ErrUnsupported.
func Open(string, uint64, Header) (*File, Header, error) {
	err := fmt.Errorf("open ring file on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	return nil, Header{}, err
}

// IsNoSpace returns false: no error comes from a ring file.
func IsNoSpace(error) bool { return false }

// The methods are not called.
func (f *File) Path() (string, error)        { return "", nil }
func (f *File) InPlace() error               { return nil }
func (f *File) Use(*Header) error            { return nil }
func (f *File) Room() int64                  { return 0 }
func (f *File) Memory() *chunk.RingMemory    { return nil }
func (f *File) Close(clock.Mark, bool) error { return nil }
func (f *File) Release()                     {}
