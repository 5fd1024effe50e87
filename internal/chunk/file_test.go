package chunk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// testFile is memory of a file, of which it counts what has a place on the disk.
type testFile struct {
	m       testMemory
	present int
	full    bool
}

func (f *testFile) memory() Memory {
	mem := f.m.memory()
	mem.Rings = &RingMemory{
		Map: func(n int) ([]byte, error) {
			if f.full {
				return nil, errRefused
			}
			f.present += n
			return mem.Map(n)
		},
		Drop: func(b []byte) bool {
			f.present -= len(b)
			return true
		},
		Fill: func(b []byte) error {
			if f.full {
				return errRefused
			}
			f.present += len(b)
			return nil
		},
	}
	return mem
}

// Chunks in a file and pages, which are not in it, are within the bound together, whichever of
// them comes first.
func TestFile_IsWithinTheBoundWithPages(t *testing.T) {
	const bound = 64 * MaxSize
	var f testFile
	p := NewPool(f.memory(), bound, MaxSize, Never)
	pages, err := p.Pages(16 * MaxSize / p.PageSize())
	require.NoError(t, err)
	chunks := make([]Ref, 48)
	for i := range chunks {
		chunks[i], err = p.Chunk()
		require.NoError(t, err)
	}
	require.NoError(t, p.Validate())
	require.Equal(t, 48*MaxSize, f.present)
	for _, r := range chunks[:32] {
		p.Put(r)
	}
	more, err := p.Pages(32 * MaxSize / p.PageSize())
	require.NoError(t, err)
	require.NoError(t, p.Validate())
	require.Equal(t, 16*MaxSize, f.present)
	p.PutPages(append(pages, more...))
	for range 48 {
		_, err := p.Chunk()
		require.NoError(t, err)
		require.NoError(t, p.Validate())
	}
	require.Equal(t, bound, f.present)
	require.Equal(t, bound, p.Used())
}

// Memory for a hole that is refused lowers the bound in force, and is asked for again.
func TestFile_RefusedHole(t *testing.T) {
	var f testFile
	p := NewPool(f.memory(), 64*MaxSize, MaxSize, Never)
	all := takeAll(t, p)
	for _, r := range all[:32] {
		p.Put(r)
	}
	p.Lower(32 * MaxSize)
	for p.Trim() {
	}
	require.Equal(t, 32*MaxSize, f.present)
	p.SetBound(64 * MaxSize)
	f.full = true
	_, err := p.Chunk()
	require.ErrorIs(t, err, errRefused)
	require.Equal(t, 32*MaxSize, p.Bound())
	require.ErrorIs(t, p.Refusal(), errRefused)
	f.full = false
	for range 400 {
		p.Stored(MaxSize, 0)
		takeAll(t, p)
	}
	require.False(t, p.Limited())
	require.Equal(t, 64*MaxSize, f.present)
	require.NoError(t, p.Validate())
}
