package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeTree writes files of many sizes and returns their directory.
func makeTree(t *testing.T, sizes ...int) string {
	t.Helper()
	dir := t.TempDir()
	for i, size := range sizes {
		path := filepath.Join(dir, fmt.Sprintf("d%d", i%3), fmt.Sprintf("f%d", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte{byte(i), 7}, size)[:size], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func filledWorld(t *testing.T, cfg config) *world {
	t.Helper()
	w, err := newWorld(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.cache.Close() })
	if err := w.fill(); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestEveryFileComesBack(t *testing.T) {
	dir := makeTree(t, 0, 1, 100, 4096, 70_000, 1_500_000, 3_000_000)
	w := filledWorld(t, config{dir: dir, maxBytes: 32 * mb, workers: 3, rounds: 2})
	w.readBack()

	if stored, large := w.stored.Load(), w.tooLarge.Load(); stored != 6 || large != 1 {
		t.Errorf("stored %d files and %d were too large, want 6 and 1", stored, large)
	}
	if hits, misses := w.hits.Load(), w.misses.Load(); hits != 6*3*2 || misses != 0 {
		t.Errorf("%d hits and %d misses, want %d and 0", hits, misses, 6*3*2)
	}
	if n := w.wrong.Load(); n != 0 {
		t.Errorf("%d wrong reads", n)
	}
}

func TestWrongBytesAreFound(t *testing.T) {
	dir := makeTree(t, 10, 20, 30)
	w := filledWorld(t, config{dir: dir, maxBytes: 32 * mb, workers: 2, rounds: 1})
	other := make([]byte, w.files[0].size) // the right length, other bytes
	if err := w.cache.Set(w.files[0].key, other); err != nil {
		t.Fatal(err)
	}
	w.cache.Del(w.files[1].key)
	w.readBack()

	if wrong, misses, hits := w.wrong.Load(), w.misses.Load(), w.hits.Load(); wrong != 2 ||
		misses != 2 || hits != 2 {
		t.Errorf("wrong %d, misses %d, hits %d; want 2 of each", wrong, misses, hits)
	}
}

func TestFollowsALinkedDirectory(t *testing.T) {
	link := filepath.Join(t.TempDir(), "src")
	if err := os.Symlink(makeTree(t, 1, 2), link); err != nil {
		t.Skip(err)
	}
	w := filledWorld(t, config{dir: link, maxBytes: 32 * mb, workers: 1, rounds: 1})
	if n := w.stored.Load(); n != 2 {
		t.Errorf("stored %d files, want 2", n)
	}
}

func TestRunPrintsTheTable(t *testing.T) {
	var out strings.Builder
	dir := makeTree(t, 5, 6, 7)
	if err := run([]string{"-max", "32", "-workers", "2", "-rounds", "1", dir}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{dir, "hits                                6\n",
		"wrong                               0\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output:\n%s", want, out.String())
		}
	}
}

func TestRunRefuses(t *testing.T) {
	file := filepath.Join(makeTree(t, 1), "d0", "f0")
	for name, args := range map[string][]string{
		"two directories":   {"a", "b"},
		"no such directory": {filepath.Join(t.TempDir(), "absent")},
		"an empty one":      {t.TempDir()},
		"a file":            {file},
		"a small cache":     {"-max", "0", "."},
		"no workers":        {"-workers", "0", "."},
		"no rounds":         {"-rounds", "0", "."},
		"an unknown flag":   {"-no-such-flag"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := run(args, &out); err == nil {
				t.Errorf("run(%q) succeeded:\n%s", args, out.String())
			}
		})
	}
}

func TestGoSource(t *testing.T) {
	src, err := goSource()
	if err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat(filepath.Join(src, "fmt")); err != nil {
		t.Error(err)
	}
	t.Run("no go command", func(t *testing.T) {
		t.Setenv("PATH", "")
		t.Setenv("GOROOT", filepath.Dir(src))
		if got, err := goSource(); err != nil || got != src {
			t.Errorf("goSource() = %q, %v; want %q", got, err, src)
		}
		t.Setenv("GOROOT", "")
		if _, err := goSource(); err == nil || !strings.Contains(err.Error(), "name a directory") {
			t.Errorf("goSource() without go and GOROOT: error %v", err)
		}
	})
}
