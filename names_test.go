package ringcache_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The names of the packages that users import, in all modules: a folder has the name of its
// package, and the package's errors and panics begin with that name.

// importable calls fn for each Go file, except tests, of a package outside the root that users may
// import.
func importable(t *testing.T, fn func(dir string, file *ast.File)) {
	t.Helper()
	walkFiles(t, []string{"adapters", "codec", "compat", "compress"}, fn)
}

// walkFiles is importable for some files, and the files of some folders.
func walkFiles(t *testing.T, names []string, fn func(dir string, file *ast.File)) {
	t.Helper()
	for _, root := range names {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "internal" || d.Name() == "cmd" || d.Name() == "testdata" {
					return fs.SkipDir
				}
				return nil
			}
			if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err == nil {
				fn(filepath.ToSlash(filepath.Dir(name)), file)
			}
			return err
		})
		require.NoError(t, err)
	}
}

// A package name that differs from the last element of the import path must be written in every
// import, and the name of a well-known package, such as prometheus, causes conflicts.
func TestNames_FoldersAreNamedLikeTheirPackages(t *testing.T) {
	packages := map[string]bool{}
	importable(t, func(dir string, file *ast.File) {
		packages[dir] = true
		assert.Equal(t, path.Base(dir), file.Name.Name, dir)
		if strings.HasPrefix(dir, "adapters/") {
			assert.Regexp(t, "^ring", file.Name.Name, dir)
		}
	})
	require.Greater(t, len(packages), 10, "they were found")
}

// A type of an internal package means nothing to a reader of the documentation.
func TestNames_NoInternalTypesInTheDocumentation(t *testing.T) {
	seen := 0
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	check := func(dir string, file *ast.File) {
		internal := map[string]bool{}
		for _, spec := range file.Imports {
			if name, _ := strconv.Unquote(spec.Path.Value); strings.Contains(name, "/internal/") {
				internal[path.Base(name)] = true
			}
		}
		if !ast.FileExports(file) { // which leaves what is exported
			return
		}
		for _, d := range file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BlockStmt, *ast.ValueSpec: // a body, or an initial value
					return false
				case *ast.SelectorExpr:
					seen++
					pkg, ok := n.X.(*ast.Ident)
					assert.False(t, ok && internal[pkg.Name], "%s shows a type of package %s", dir, n.X)
				}
				return true
			})
		}
	}
	walkFiles(t, files, check)
	importable(t, check)
	require.Greater(t, seen, 50, "types of other packages")
}

// apiFile has the exported declarations of all packages that users import, without their comments.
const apiFile = "testdata/api.txt"

var writeAPI = flag.Bool("ringcache.api", false, "write "+apiFile)

// What is in apiFile has been published. A declaration that changes or disappears breaks programs.
func TestNames_APIIsThePublishedOne(t *testing.T) {
	packages := map[string][]string{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	add := func(dir string, file *ast.File) {
		packages[dir] = append(packages[dir], exported(t, file)...)
	}
	walkFiles(t, files, add)
	importable(t, add)
	var api strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		slices.Sort(packages[dir])
		api.WriteString("# " + path.Join("github.com/ringcache/ringcache", dir) + "\n\n")
		for _, decl := range slices.Compact(packages[dir]) { // one for each system may be the same
			api.WriteString(decl + "\n\n")
		}
	}
	if *writeAPI {
		require.NoError(t, os.WriteFile(apiFile, []byte(api.String()), 0o644))
	}
	published, err := os.ReadFile(apiFile)
	require.NoError(t, err)
	text := strings.ReplaceAll(string(published), "\r\n", "\n")
	require.Equal(t, text, api.String(), "the exported API has changed. If that is meant, list it in "+
		"CHANGELOG.md, and run: go test -run=API . -ringcache.api")
}

// exported returns the exported declarations of a file.
func exported(t *testing.T, file *ast.File) (decls []string) {
	t.Helper()
	types := map[*ast.InterfaceType][]*ast.Field{} // the sets of types, which FileExports removes
	ast.Inspect(file, func(n ast.Node) bool {
		if i, ok := n.(*ast.InterfaceType); ok {
			for _, f := range i.Methods.List {
				if _, ok := f.Type.(*ast.BinaryExpr); ok {
					types[i] = append(types[i], f)
				}
			}
		}
		return true
	})
	ast.FileExports(file)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.InterfaceType:
			n.Methods.List, n.Incomplete = append(n.Methods.List, types[n]...), false
		case *ast.StructType:
			n.Incomplete = false
		}
		return true
	})
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			receiver, _, _ := strings.Cut(funcName(f), ".")
			if !ast.IsExported(receiver) {
				continue // a method of a type that is not exported
			}
			f.Body = nil
		}
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		var b bytes.Buffer
		require.NoError(t, format.Node(&b, token.NewFileSet(), d))
		decls = append(decls, b.String())
	}
	return decls
}

// prefixed matches a message that begins with the name of its package.
var prefixed = regexp.MustCompile(`^([a-z][a-z0-9]*): `)

// Errors have the form "package: verb object: cause". A panic must have all of it; an error may be
// a cause that is wrapped later.
func TestNames_ErrorsBeginWithTheirPackage(t *testing.T) {
	seen := 0
	importable(t, func(dir string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			text, ok := literal(call.Args[0])
			if !ok {
				return true
			}
			switch fun := called(call); fun {
			case "panic", "errors.New", "fmt.Errorf":
				m := prefixed.FindStringSubmatch(text)
				if m != nil || fun == "panic" {
					seen++
					want := "^" + file.Name.Name + ": [a-z]+ [^:]+: "
					assert.Regexp(t, want, text, "%s: %s", dir, fun)
				}
			}
			return true
		})
	})
	require.Greater(t, seen, 20, "they were found")
}

// literal returns the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// called returns the name of the called function, with that of its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if pkg, ok := f.X.(*ast.Ident); ok {
			return pkg.Name + "." + f.Sel.Name
		}
	}
	return ""
}
