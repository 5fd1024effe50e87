package trace

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	_, err := zw.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, zw.Close())
	return buf.Bytes()
}

func TestLoadRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.csv.gz")
	require.NoError(t, os.WriteFile(path, zipped(t, "0,100\n1,0\n\n0,4294967295\n"), 0o600))
	got, err := loadRequests(path)
	require.NoError(t, err)
	want := []Request{{0, 100}, {1, 0}, {0, math.MaxUint32}}
	require.Equal(t, want, got)
}

func TestLoadRequests_Missing(t *testing.T) {
	_, err := loadRequests(filepath.Join(t.TempDir(), "none.csv.gz"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReadRequests_BadInput(t *testing.T) {
	for text, part := range map[string]string{
		"1,2\n3\n":        "line 2: no comma",
		"x,2\n":           "line 1: key id",
		"1,-2\n":          "line 1: size",
		"4294967296,1\n":  "line 1: key id",
		"1,2\n1,2,3\n4,5": "line 2: size",
	} {
		_, err := readRequests(bytes.NewReader(zipped(t, text)))
		assert.ErrorContains(t, err, part, "%q", text)
	}
	_, err := readRequests(strings.NewReader("not gzip at all"))
	require.ErrorIs(t, err, gzip.ErrHeader)
	whole := zipped(t, strings.Repeat("1,2\n", 1000))
	_, err = readRequests(bytes.NewReader(whole[:len(whole)-9]))
	require.Error(t, err, "it is cut short")
}
