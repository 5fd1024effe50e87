package compresstest

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// corpusBytes is the maximum amount of text of one kind that the tests read.
const corpusBytes = 4 << 20

// texts are the files of each kind, such as ".json", of the Go tree and of the module cache,
// concatenated, each of up to 256 KB.
var texts = sync.OnceValues(func() (map[string][]byte, error) {
	dirs, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{".json": nil, ".html": nil}
	for dir := range strings.Lines(string(dirs)) {
		dir = strings.TrimSpace(dir)
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if len(all[".json"]) >= corpusBytes && len(all[".html"]) >= corpusBytes {
				return fs.SkipAll // a module cache may have a million files
			}
			kind := filepath.Ext(path)
			text, wanted := all[kind]
			if err != nil || !wanted || !d.Type().IsRegular() || len(text) >= corpusBytes {
				return nil
			}
			b, err := os.ReadFile(path)
			all[kind] = append(text, b[:min(len(b), 256<<10)]...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

// records splits the texts of a kind into distinct values of size bytes, and returns samples of at
// most 128 KB in total, and the other values.
func records(tb testing.TB, kind string, size int) (samples, values [][]byte) {
	tb.Helper()
	all, err := texts()
	require.NoError(tb, err)
	seen := map[string]bool{}
	for text := all[kind]; len(text) >= size; text = text[size:] {
		if v := text[:size:size]; !seen[string(v)] {
			seen[string(v)] = true
			values = append(values, v)
		}
	}
	random := rand.New(rand.NewPCG(28, 1))
	random.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	n := max(1, min(128<<10/size, len(values)/2))
	require.Greater(tb, len(values), n, "too little %s of %d bytes", kind, size)
	return values[:n], values[n:]
}
