package fastcache

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fastcache's own tests pass on this package. Left out is TestGenerationOverflow, which
// writes to a generation inside of a bucket: there is none.
func TestSuite_FastcacheOwnTestsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	theirs := goCommand(t, ".", "list", "-m", "-f", "{{.Dir}}", "github.com/VictoriaMetrics/fastcache")
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"fastcache.go", "stats.go", "big.go", "file.go", "folder.go",
		"go.mod", "go.sum"} {
		copyFile(t, filepath.Join(here, name), filepath.Join(dir, name))
	}
	for _, name := range []string{"fastcache_test.go", "fastcache_gen_test.go", "bigcache_test.go",
		"file_test.go"} {
		copyFile(t, filepath.Join(theirs, name), filepath.Join(dir, name))
	}
	root := filepath.Dir(filepath.Dir(here))
	goCommand(t, dir, "mod", "edit", "-replace", "github.com/ringcache/ringcache="+root)
	out := goCommand(t, dir, "test", "-v", "-skip", "TestGenerationOverflow", ".")
	require.Greater(t, strings.Count(out, "\n--- PASS"), 10, out)
}

func copyFile(t *testing.T, from, to string) {
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o644))
}

func goCommand(t *testing.T, dir string, args ...string) string {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}
