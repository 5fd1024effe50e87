package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/bits"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Buckets lie side by side in a Cache. A lookup touches the first two cache lines of one, and
// in the main ring one more.
func TestLayout_BucketLines(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("the layout is for 64-bit platforms")
	}
	const line = 64
	c := ringtest.MustCache(t, ringtest.Tiny(64, 1024, 64))
	b, next := ringtest.Nth(c, 0), ringtest.Nth(c, 1)
	first := uintptr(unsafe.Pointer(&b.Index)) - 16 // after sequence and lock
	bytes := uintptr(unsafe.Pointer(&next.Index)) - 16 - first
	require.Zero(t, first%line)
	require.Zero(t, bytes%line, "a bucket of %d bytes", bytes)
	require.Less(t, uintptr(unsafe.Pointer(&b.Form))-first, uintptr(2*line))
	require.Equal(t, first, uintptr(unsafe.Pointer(b.Seq)), "sequence and lock come first")
	require.Equal(t, first+8, uintptr(unsafe.Pointer(b.Mu)))
	main := uintptr(unsafe.Pointer(&b.Rings[policy.Main])) - first
	require.Zero(t, main%line, "main begins at %d", main)
}

// Every lookup writes a counter, so no counter is within two cache lines, which processors fetch in
// pairs, of the fields that all lookups read: mask, buckets and shared.
func TestLayout_CounterLines(t *testing.T) {
	const line, read = 64, 40
	c := ringtest.MustCache(t, ringtest.Tiny(64, 1024, 64))
	mask := uintptr(unsafe.Pointer(ringtest.Mask(c)))
	counters := uintptr(unsafe.Pointer(ringtest.Counters(c)))
	require.GreaterOrEqual(t, counters, mask+read+2*line)
}

// The comment of Store lists its methods.
func TestStore_CommentListsItsMethods(t *testing.T) {
	var listed []string
	methods := []string{"Keys", "Long", "Fit"} // types
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				if s, ok := d.Specs[0].(*ast.TypeSpec); ok && s.Name.Name == "Store" {
					_, list, _ := strings.Cut(d.Doc.Text(), "\n\n")
					list, _, _ = strings.Cut(list, "\n\n")
					listed = regexp.MustCompile(`\b[A-Z]\w+`).FindAllString(list, -1)
				}
			case *ast.FuncDecl:
				if d.Recv == nil || !d.Name.IsExported() {
					continue
				}
				star, ok := d.Recv.List[0].Type.(*ast.StarExpr)
				if ok && star.X.(*ast.Ident).Name == "Store" {
					methods = append(methods, d.Name.Name)
				}
			}
		}
	}
	require.ElementsMatch(t, methods, listed)
}
