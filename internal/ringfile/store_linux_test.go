package ringfile

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Only an error that says so is one of space. Whatever else fallocate answers, bytes are written.
func TestAsSpace(t *testing.T) {
	require.NoError(t, asSpace(nil))
	for _, err := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		require.ErrorIs(t, asSpace(err), err)
		require.NotErrorIs(t, asSpace(err), errors.ErrUnsupported)
	}
	for _, err := range []error{unix.EPERM, unix.EINTR, unix.EOPNOTSUPP, unix.ENOSYS, unix.ENODEV,
		unix.EINVAL, unix.EIO, unix.EACCES} {
		require.ErrorIs(t, asSpace(err), errors.ErrUnsupported)
	}
}
