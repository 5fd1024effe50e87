package workload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	if _, err := zw.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestLoadTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.csv.gz")
	if err := os.WriteFile(path, zipped(t, "0,100\n1,0\n\n0,4294967295\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := LoadTrace(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{{0, 100}, {1, 0}, {0, math.MaxUint32}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLoadTrace_Missing(t *testing.T) {
	if _, err := LoadTrace(filepath.Join(t.TempDir(), "none.csv.gz")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error that is fs.ErrNotExist", err)
	}
}

func TestReadTrace_BadInput(t *testing.T) {
	for text, part := range map[string]string{
		"1,2\n3\n":        "line 2: no comma",
		"x,2\n":           "line 1: key id",
		"1,-2\n":          "line 1: size",
		"4294967296,1\n":  "line 1: key id",
		"1,2\n1,2,3\n4,5": "line 2: size",
	} {
		_, err := ReadTrace(bytes.NewReader(zipped(t, text)))
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got error %v, want one with %q", text, err, part)
		}
	}
	if _, err := ReadTrace(strings.NewReader("not gzip at all")); !errors.Is(err, gzip.ErrHeader) {
		t.Errorf("got %v, want gzip.ErrHeader", err)
	}
	whole := zipped(t, strings.Repeat("1,2\n", 1000))
	if _, err := ReadTrace(bytes.NewReader(whole[:len(whole)-9])); err == nil {
		t.Error("a truncated trace was read without an error")
	}
}
