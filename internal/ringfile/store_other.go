//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package ringfile

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/ringcache/ringcache/internal/chunk"
)

// Store is the open file of a cache, which this system does not have.
type Store struct {
	Rings     *File
	IsNew     bool
	Discarded bool
	Last      Mark
}

// Open returns an error that is errors.ErrUnsupported.
func Open(string, string, func() Header) (*Store, Header, error) {
	err := fmt.Errorf("open ring file on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	return nil, Header{}, err
}

// Memory is not called.
func (f *Store) Memory() *chunk.RingMemory { return nil }

// ReadAhead is not called.
func (f *Store) ReadAhead(chunk.Ref) {}

// Begin is not called.
func Begin(*os.File, string, Header) (*Store, error) { return nil, errors.ErrUnsupported }

// Forget is not called.
func (f *Store) Forget() {}

// Recall is not called.
func (f *Store) Recall() {}

// HasOtherNames is not called.
func (f *Store) HasOtherNames() bool { return false }

// Close is not called.
func (f *Store) Close(Mark) error { return nil }

// Release is not called.
func (f *Store) Release() {}
