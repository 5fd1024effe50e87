//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package ringfile

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/ringcache/ringcache/internal/chunk"
)

// Store is the open file of a cache. This system does not support such files.
type Store struct {
	Rings     *File
	IsNew     bool
	Discarded bool
	Last      Mark
}

// Open returns an error that is errors.ErrUnsupported.
func Open(string, uint64, func() Header) (*Store, Header, error) {
	err := fmt.Errorf("open ring file on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	return nil, Header{}, err
}

// The methods are not called.
func (f *Store) Path() (string, error)     { return "", nil }
func (f *Store) Use(*Header) error         { return nil }
func (f *Store) Room() int64               { return 0 }
func (f *Store) Memory() *chunk.RingMemory { return nil }
func (f *Store) Close(Mark, bool) error    { return nil }
func (f *Store) Release()                  {}
