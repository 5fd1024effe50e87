package near

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// FuzzRecords has any bytes as the records of a key: a reply is a part of them, or there is none, a
// lookup allocates little more than copies, and a new reply takes the place of what was there.
func FuzzRecords(f *testing.F) {
	version := "version."
	f.Add([]byte("\x03GET"+version+"expires reply"), []byte(version+"expires reply"), "GET")
	f.Add([]byte("\x03GET"+version+"expires reply"), []byte(version+"expires reply"), "HGETALL")
	f.Add([]byte("\x03GET"+version), []byte(version), "GET")
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01GET"+version), []byte(nil), "GET")
	f.Add([]byte(nil), []byte(nil), "")
	const key, view = "key", 2
	cache := ringcache.New(1 << 20)
	f.Cleanup(func() { cache.Close() })
	f.Fuzz(func(t *testing.T, main, side []byte, cmd string) {
		r := &records{cache: cache, lastVersion: 1}
		if cache.Set(appendMainKey(nil, view, key), main) != nil ||
			cache.Set(appendSideKey(nil, view, key, cmd), side) != nil {
			return // too long
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		reply, ok := r.get(view, key, cmd, time.UnixMilli(0), false)
		runtime.ReadMemStats(&after)
		most := uint64(4*(len(main)+len(side)+len(cmd)) + 16<<10)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, most)
		if ok {
			require.True(t, bytes.HasSuffix(main, reply) || bytes.HasSuffix(side, reply))
			require.GreaterOrEqual(t, len(reply), expirySize)
		}

		rec := record{cmd: "GET", at: 1 + 3}
		rec.bytes = append([]byte("\x03GET"+version), 0, 0, 0, 0, 0, 0, 1)
		want := bytes.Clone(rec.bytes[rec.at+versionSize:])
		r.set(view, key, rec, time.Hour)
		reply, ok = r.get(view, key, "GET", time.UnixMilli(0), true)
		require.True(t, ok)
		require.Equal(t, want, reply)
		r.del(view, key)
		_, ok = r.get(view, key, "GET", time.UnixMilli(0), true)
		require.False(t, ok)
	})
}
