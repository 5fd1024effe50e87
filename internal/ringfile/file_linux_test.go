package ringfile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Only an error that says so is one of space. Whatever else fallocate answers, bytes are written.
func TestIsNoSpace(t *testing.T) {
	for _, err := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		require.True(t, IsNoSpace(fmt.Errorf("allocate: %w", err)))
	}
	for _, err := range []error{nil, errors.ErrUnsupported, unix.EPERM, unix.EINTR, unix.EOPNOTSUPP,
		unix.ENOSYS, unix.ENODEV, unix.EINVAL, unix.EIO, unix.EACCES} {
		require.False(t, IsNoSpace(err), err)
	}
}
