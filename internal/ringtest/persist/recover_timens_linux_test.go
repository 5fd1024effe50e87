package persist

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/ringtest"
)

const timeEnv = "RINGCACHE_TEST_TIME"

// A file goes from one time namespace to another, in which the clock of the same boot is ahead or
// behind: what has expired is gone, and what has not is there, unless that clock went ahead.
func TestFile_TimeNamespaces(t *testing.T) {
	if path := os.Getenv(timeEnv); path != "" {
		timeChild(t, path)
		return
	}
	ringtest.SkipUnderRace(t)
	const ahead, far = "1000000", "2000000"
	for name, tt := range map[string]struct{ from, to, found string }{
		"the same":       {"0", "0", "forever, an hour"},
		"behind":         {ahead, "0", "forever, an hour"},
		"farther behind": {far, ahead, "forever, an hour"},
		"ahead":          {"0", ahead, "forever"},
	} {
		for _, end := range []string{"closed", "killed"} {
			t.Run(name+", "+end, func(t *testing.T) {
				t.Parallel() // most of the time it sleeps
				path := filepath.Join(t.TempDir(), end)
				require.Empty(t, inTimeNamespace(t, tt.from, path))
				time.Sleep(shortTTL)
				require.Equal(t, tt.found, inTimeNamespace(t, tt.to, path))
			})
		}
	}
}

const shortTTL = 200 * time.Millisecond

// timeChild opens the file, notes what it finds, and sets entries.
func timeChild(t *testing.T, path string) {
	c := ringtest.OpenFile(t, path, 4<<20)
	var found []string
	entries := []struct {
		key string
		ttl time.Duration
	}{{"forever", 0}, {"an hour", time.Hour}, {"short", shortTTL}}
	for _, e := range entries {
		if c.Has([]byte(e.key)) {
			found = append(found, e.key)
		}
	}
	require.NoError(t, os.WriteFile(path+".found", []byte(strings.Join(found, ", ")), 0o600))
	for _, e := range entries {
		require.NoError(t, c.SetWithTTL([]byte(e.key), nil, e.ttl))
	}
	if filepath.Base(path) == "closed" {
		require.NoError(t, c.Close())
	}
}

// inTimeNamespace runs the test again under a clock of the boot that is ahead, and returns which
// entries it has found.
func inTimeNamespace(t *testing.T, ahead, path string) (found string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("unshare", "--time", "--boottime", ahead, exe,
		"-test.run=^TestFile_TimeNamespaces$", "-test.count=1")
	cmd.Env = append(os.Environ(), timeEnv+"="+path)
	out, err := cmd.CombinedOutput()
	b, readErr := os.ReadFile(path + ".found")
	if readErr != nil {
		t.Skipf("there are no time namespaces here: %v: %s", err, out)
	}
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Remove(path+".found"))
	return string(b)
}
