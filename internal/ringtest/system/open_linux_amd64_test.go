package system

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// If the opening of a file of another Version ends anywhere, as with a kill, the next one finds
// none of its namespaces: those go before the new rings count as sound.
func TestFile_OpeningAnotherVersionEndsAnywhere(t *testing.T) {
	type step struct {
		Path    string
		Version uint64
	}
	const failed = "failed"
	if ringtest.ServeAnswered(t, func(line string) string {
		var s step
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 256 << 10, File: s.Path,
			Version: s.Version})
		if err != nil {
			return failed
		}
		defer func() { require.NoError(t, c.Close()) }()
		found := len(maps.Collect(c.Namespaces()))
		if s.Version == 0 {
			require.NoError(t, c.Namespace("n").Set([]byte("k"), nil))
		}
		return fmt.Sprint(found)
	}) {
		return
	}
	dir, err := os.MkdirTemp("/dev/shm", "ringcache")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	child := ringtest.StartAnswered(t, dir)
	open := func(s step, rule ringtest.Answer) string {
		line, err := json.Marshal(s)
		require.NoError(t, err)
		child.Answer(rule)
		reply, err := child.Ask(string(line), time.Minute)
		require.NoError(t, err)
		child.Answer(ringtest.Answer{})
		return reply
	}
	nth := 0
	for reply := failed; reply == failed; {
		nth++
		s := step{Path: filepath.Join(dir, fmt.Sprint(nth))}
		require.Equal(t, "0", open(s, ringtest.Answer{}))
		s.Version = 1
		reply = open(s, ringtest.Answer{Call: "ftruncate", Nth: nth, Last: nth, Errno: unix.EIO})
		require.Equal(t, "0", open(s, ringtest.Answer{}), "call %d failed", nth)
	}
	require.Greater(t, nth, 3, "the test proves nothing")
}
