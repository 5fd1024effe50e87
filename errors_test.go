package ringcache_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// failing is a method of Cache that may return an error of the package.
type failing struct {
	name string // of the method
	verb string // what its errors say that it does
	call func(c *ringcache.Cache, k, v []byte) error
}

// failingCalls are calls that store v under k, whether or not k is present.
func failingCalls() []failing {
	return []failing{
		{"CompareAndSwap", "swap entry", func(c *ringcache.Cache, k, v []byte) error {
			_ = c.Set(k, nil)
			_, err := c.CompareAndSwap(k, nil, v)
			return err
		}},
		{"Set", "set entry", func(c *ringcache.Cache, k, v []byte) error { return c.Set(k, v) }},
		{"SetBatch", "set batch: index 0: set entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.SetBatch([][]byte{k}, [][]byte{v})
		}},
		{"SetIfAbsent", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			_, _, err := c.SetIfAbsent(nil, k, v, 0)
			return err
		}},
		{"SetIfChanged", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			_, err := c.SetIfChanged(k, v)
			return err
		}},
		{"SetWithTTL", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.SetWithTTL(k, v, time.Hour)
		}},
		{"Update", "update entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.Update(k, ringtest.Store(v))
		}},
		{"SetBatchWithTTL", "set batch: index 0: set entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.SetBatchWithTTL([][]byte{k}, [][]byte{v}, time.Hour)
		}},
		{"Update", "update entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.Update(k, func(e *ringtest.Entry) { e.SetWithTTL(v, time.Hour) })
		}},
		{"Set", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			return ringtest.BytesView(c).Set(k, v)
		}},
		{"SetWithTTL", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			return ringtest.BytesView(c).SetWithTTL(k, v, time.Hour)
		}},
		{"SetIfAbsent", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			_, _, err := ringtest.BytesView(c).SetIfAbsent(k, v, 0)
			return err
		}},
		{"SetIfChanged", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			_, err := ringtest.BytesView(c).SetIfChanged(k, v)
			return err
		}},
		{"SetBatch", "set batch: index 0: set entry", func(c *ringcache.Cache, k, v []byte) error {
			return ringtest.BytesView(c).SetBatch([][]byte{k}, [][]byte{v})
		}},
		{"Update", "update entry", func(c *ringcache.Cache, k, v []byte) error {
			return ringtest.BytesView(c).Update(k, ringtest.Store(v))
		}},
		{"Set", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.Namespace("n").Set(k, v)
		}},
		{"SetWithTTL", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.Namespace("n").SetWithTTL(k, v, time.Hour)
		}},
		{"SetIfAbsent", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			_, _, err := c.Namespace("n").SetIfAbsent(nil, k, v, 0)
			return err
		}},
		{"SetIfChanged", "set entry", func(c *ringcache.Cache, k, v []byte) error {
			_, err := c.Namespace("n").SetIfChanged(k, v)
			return err
		}},
		{"SetBatch", "set batch: index 0: set entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.Namespace("n").SetBatch([][]byte{k}, [][]byte{v})
		}},
		{"Update", "update entry", func(c *ringcache.Cache, k, v []byte) error {
			return c.Namespace("n").Update(k, ringtest.Store(v))
		}},
	}
}

// An error names the call, and the comment of its sentinel lists the method.
func TestErrors_SayWhatWasCalled(t *testing.T) {
	docs := sentinelDocs(t)
	long := make([]byte, ringtest.MinBytes/16+1)
	refusing := ringtest.Default(ringtest.MinBytes)
	refusing.Memory.Map = func(int) ([]byte, error) { return nil, errors.New("none left") }
	closed := ringcache.New(ringtest.MinBytes)
	require.NoError(t, closed.Close())
	for _, f := range failingCalls() {
		k := []byte("key of " + f.name)
		for _, tt := range []struct {
			sentinel string
			want     error
			c        *ringcache.Cache
			v        []byte
		}{
			{"ErrTooLarge", ringcache.ErrTooLarge,
				ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes)), long},
			{"ErrNoMemory", ringcache.ErrNoMemory, ringtest.MustCache(t, refusing), []byte("v")},
			{"ErrClosed", ringcache.ErrClosed, closed, []byte("v")},
		} {
			if f.name == "CompareAndSwap" && tt.want == ringcache.ErrNoMemory {
				continue // there is nothing that it could swap
			}
			err := f.call(tt.c, k, tt.v)
			require.ErrorIs(t, err, tt.want, f.name)
			assert.Regexp(t, "^ringcache: "+f.verb, err.Error(), f.name)
			name, timed := strings.CutSuffix(f.name, "WithTTL")
			assert.Regexp(t, `\b`+name+`\b`, docs[tt.sentinel], "the comment of %s", tt.sentinel)
			if timed {
				assert.Regexp(t, `\bforms with\s+a TTL\b`, docs[tt.sentinel], tt.sentinel)
			}
		}
	}
	require.ErrorIs(t, closed.DropNamespace("n"), ringcache.ErrClosed)
	assert.Regexp(t, `\bDropNamespace\b`, docs["ErrClosed"])
	require.ErrorIs(t, closed.Resize(ringtest.MinBytes), ringcache.ErrClosed)
	assert.Regexp(t, `\bResize\b`, docs["ErrClosed"])
	assert.Regexp(t, `\bNewWithOptions\b[^.]*\bResize\b`, docs["ErrInvalidOptions"])
	for _, name := range []string{"SetWithTTL", "SetBatchWithTTL", "SetIfAbsent", "Update"} {
		assert.Regexp(t, `\b`+name+`\b`, docs["ErrTTLTooShort"])
	}
}

// sentinelDocs returns the comments of the errors in errors.go. "The methods that store" are listed
// in the comment of all of them.
func sentinelDocs(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.ParseComments)
	require.NoError(t, err)
	docs, storing := map[string]string{}, ""
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			storing = n.Doc.Text()
		case *ast.ValueSpec:
			doc := n.Doc.Text()
			if regexp.MustCompile(`methods\s+that\s+store`).MatchString(doc) {
				doc += storing // which lists them
			}
			docs[n.Names[0].Name] = doc
		}
		return true
	})
	return docs
}

// A nil function is a programmer's error. The call that receives it panics, whatever the cache
// holds, not only when the function is needed.
func TestErrors_NilFunctionPanicsAtOnce(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes)
	defer ringtest.CloseCache(t, c)
	there, missing := []byte("there"), []byte("missing")
	require.NoError(t, c.Set(there, []byte("v")))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, k := range [][]byte{there, missing} {
		for _, tt := range []struct {
			method string
			call   func()
		}{
			{"Update", func() { _ = c.Update(k, nil) }},
			{"GetOrLoad", func() { _, _ = c.GetOrLoad(ctx, nil, k, nil) }},
			{"GetOrLoadBatch", func() {
				_, _, _ = c.GetOrLoadBatch(ctx, nil, [][]byte{k}, make([][]byte, 1), nil)
			}},
			{"All", func() { c.All()(nil) }},
			{"Keys", func() { c.Keys()(nil) }},
			{"Update", func() { _ = c.Namespace("n").Update(k, nil) }},
			{"GetOrLoad", func() { _, _ = c.Namespace("n").GetOrLoad(ctx, nil, k, nil) }},
			{"All", func() { c.Namespace("n").All()(nil) }},
			{"Keys", func() { c.Namespace("n").Keys()(nil) }},
			{"Update", func() { _ = ringtest.BytesView(c).Update(k, nil) }},
			{"GetOrLoad", func() { _, _ = ringtest.BytesView(c).GetOrLoad(ctx, k, nil) }},
			{"All", func() { ringtest.BytesView(c).All()(nil) }},
			{"Keys", func() { ringtest.BytesView(c).Keys()(nil) }},
		} {
			require.PanicsWithValue(t, "ringcache: "+tt.method+": nil function", tt.call)
		}
	}
	require.NoError(t, ringtest.Usable(c, there, []byte("v")), "no lock is held")
}
