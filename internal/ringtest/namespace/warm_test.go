package namespace

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// What namespaces held when a cache was closed, saved or killed is found by the next process,
// whether or not anybody has read it, in a cache of the same bound.

// tenants is many namespaces of a few entries each.
const tenants, entriesEach = 1000, 20

func tenantName(i int) string { return fmt.Sprint("tenant-", i) }

// setTenants sets the entries of all tenants.
func setTenants(t *testing.T, c *ringcache.Cache) {
	t.Helper()
	for i := range tenants {
		n := c.Namespace(tenantName(i))
		for j := range entriesEach {
			if err := n.Set(ringtest.IDKey(j), fmt.Appendf(nil, "value %d of %d", j, i)); err != nil {
				require.NoError(t, err)
			}
		}
	}
}

// heldBy returns the entries that the tenants hold.
func heldBy(c *ringcache.Cache) map[string]string {
	held := map[string]string{}
	for i := range tenants {
		for j := range entriesEach {
			if v, ok := c.Namespace(tenantName(i)).Peek(nil, ringtest.IDKey(j)); ok {
				held[fmt.Sprint(i, " ", j)] = string(v)
			}
		}
	}
	return held
}

// othersFlowBy sets other keys of about so many bytes in all.
func othersFlowBy(t *testing.T, c *ringcache.Cache, from, bytes int, alive func(i int)) {
	t.Helper()
	for i := 0; bytes > 0; i++ {
		bytes -= 120
		require.NoError(t, c.Set(fmt.Appendf(nil, "other %d", from+i), make([]byte, 100)))
		if i%10 == 0 && alive != nil {
			alive(i / 10)
		}
	}
}

func TestNamespace_WarmAfterEveryRestart(t *testing.T) {
	for _, mb := range []int{4, 32} {
		for _, read := range []bool{true, false} {
			for _, way := range []string{"Close", "Save", "kill", "Reset"} {
				if way != "Save" && !chunk.OffHeap || mb == 32 && (read || way == "Reset") {
					continue // no ring files in this build, or nothing new
				}
				t.Run(fmt.Sprintf("%d MB/read=%v/%s", mb, read, way), func(t *testing.T) {
					warmAfterRestart(t, mb<<20, read, way)
				})
			}
		}
	}
}

func warmAfterRestart(t *testing.T, maxBytes int, read bool, way string) {
	dir := ringtest.DirInMemory(t)
	o := ringcache.Options{MaxBytes: maxBytes, File: filepath.Join(dir, "cache")}
	if way == "Save" {
		o.File = ""
	}
	c, err := ringcache.NewWithOptions(o)
	require.NoError(t, err)
	setTenants(t, c)
	var alive func(i int)
	if read { // by one tenant after another
		alive = func(i int) {
			n := c.Namespace(tenantName(i % tenants))
			for j := range entriesEach {
				n.Has(ringtest.IDKey(j))
			}
		}
	}
	othersFlowBy(t, c, 0, 2*maxBytes, alive)
	if way == "Reset" {
		c.Reset()
		othersFlowBy(t, c, 0, 1000, nil)
	}
	if !read || way == "Reset" {
		setTenants(t, c) // nobody reads them, and others come after them
		othersFlowBy(t, c, 1<<30, maxBytes/4, nil)
	}
	held := heldBy(c)
	require.NotEmpty(t, held)
	switch way {
	case "Save":
		path := filepath.Join(dir, "snapshot")
		require.NoError(t, c.SaveToFile(path))
		require.NoError(t, c.Close())
		c, _, err = ringcache.Load(path, o)
		require.NoError(t, err)
	case "kill":
		ringtest.Abandon(c)
		c, err = ringcache.NewWithOptions(o)
		require.NoError(t, err)
	default:
		require.NoError(t, c.Close())
		c, err = ringcache.NewWithOptions(o)
		require.NoError(t, err)
	}
	defer c.Close()
	found := heldBy(c)
	lost := 0
	for k, v := range held {
		if found[k] == "" {
			lost++
		} else if found[k] != v {
			require.Equal(t, v, found[k])
		}
	}
	for k := range found {
		if held[k] == "" {
			require.Fail(t, "it has come back", k)
		}
	}
	t.Logf("%d of %d entries lost", lost, len(held))
	most := 0
	if way == "kill" {
		most = len(held) / 50 // records that were evicted are stored again at Close
	}
	require.LessOrEqual(t, lost, most)
	require.NoError(t, ringtest.Validate(c))
}

// A Reset and a thousand Sets in a namespace, and then Close: all are found.
func TestNamespace_WarmAfterReset(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	o := ringcache.Options{MaxBytes: 4 << 20, File: filepath.Join(t.TempDir(), "cache")}
	for whole := range 2 {
		c, err := ringcache.NewWithOptions(o)
		require.NoError(t, err)
		n := c.Namespace("n")
		fill(t, n, 100, 50)
		if whole == 1 {
			c.Reset()
		} else {
			n.Reset()
		}
		require.Zero(t, n.Len())
		fill(t, n, 1000, 50)
		require.NoError(t, c.Close())
		c, err = ringcache.NewWithOptions(o)
		require.NoError(t, err)
		require.Equal(t, 1000, countFound(c.Namespace("n"), 1000))
		require.NoError(t, c.DropNamespace("n"), "whoever has asked for it")
		require.NoError(t, c.Close())
	}
}

// The records of a thousand namespaces do not fill the smallest cache.
func TestNamespace_ManyInTheSmallestCache(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	o := ringcache.Options{MaxBytes: 256 << 10, File: filepath.Join(t.TempDir(), "cache")}
	for range 3 { // each time they come from the file
		c, err := ringcache.NewWithOptions(o)
		require.NoError(t, err)
		for i := range tenants {
			require.NoError(t, c.Namespace(tenantName(i)).Set([]byte("k"), []byte("v")))
		}
		keys := 1000
		for i := range keys {
			require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 100)))
		}
		found := 0
		for i := range keys {
			if c.Has(ringtest.IDKey(i)) {
				found++
			}
		}
		require.Greater(t, found, keys/2)
		require.NoError(t, ringtest.Validate(c))
		require.NoError(t, c.Close())
	}
}

// A tenant that has departed is known from the file, though nobody asks for it.
func TestNamespaces_OfAFile(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	o := ringcache.Options{MaxBytes: 4 << 20, File: filepath.Join(t.TempDir(), "cache")}
	names := func(c *ringcache.Cache) (all []string) {
		for name, n := range c.Namespaces() {
			all = append(all, name)
			require.Same(t, n, c.Namespace(name))
			require.Equal(t, 10, n.Len())
		}
		return all
	}
	c, err := ringcache.NewWithOptions(o)
	require.NoError(t, err)
	fill(t, c.Namespace("departed"), 10, 10)
	fill(t, c.Namespace("stays"), 10, 10)
	require.NoError(t, c.Close())
	for _, want := range [][]string{{"departed", "stays"}, {"stays"}} {
		c, err = ringcache.NewWithOptions(o)
		require.NoError(t, err)
		require.ElementsMatch(t, want, names(c))
		require.NoError(t, c.DropNamespace("departed"))
		require.Equal(t, []string{"stays"}, names(c))
		require.NoError(t, c.Close())
	}
}

// EvictedEntries counts what OnRemove is told of, and nothing else.
func TestNamespace_EvictedEntriesAreThoseOfUsers(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	told := uint64(0)
	c, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 256 << 10, File: filepath.Join(t.TempDir(), "cache"),
		OnRemove: func(gone ringcache.Removal) {
			if gone.Reason == ringcache.RemovedEvicted {
				told++
			}
		},
	})
	require.NoError(t, err)
	for i := range 30_000 {
		n := c.Namespace(tenantName(i % 3000))
		require.NoError(t, n.Set(ringtest.IDKey(i), make([]byte, 50)))
	}
	require.Equal(t, told, c.Stats().EvictedEntries)
	require.NotZero(t, told)
	require.NoError(t, ringtest.Validate(c))
	require.NoError(t, c.Close())
}
