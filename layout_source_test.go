package ringcache_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The input of layout_test.go: source files, and the calls within a package.

// source is a Go file.
type source struct {
	path, dir string
	lines     []string
	pkg       string
	imports   []string
	funcs     map[string]int // lines of each
}

// sources returns the source files of the library, and tests its test files.
func sources(t *testing.T) []source { return goFiles(t, false) }
func tests(t *testing.T) []source   { return goFiles(t, true) }

func goFiles(t *testing.T, tests bool) (all []source) {
	t.Helper()
	for _, pattern := range []string{"*.go", "codec/*.go", "internal/*/*.go", "compress/*/*.go",
		"compress/internal/rawdict/*.go", "internal/ringtest/*/*.go",
		"adapters/internal/metrics/*.go", "adapters/internal/near/*.go"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			if isTestCode(filepath.ToSlash(path)) == tests {
				all = append(all, readSource(t, path))
			}
		}
	}
	require.Greater(t, len(all), 5, "the rules would not be checked")
	return all
}

// isTestCode reports whether only tests use a file.
func isTestCode(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/ringtest/")
}

func readSource(t *testing.T, path string) source {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s := source{path: filepath.ToSlash(path), dir: filepath.ToSlash(filepath.Dir(path))}
	s.lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, 0)
	require.NoError(t, err)
	s.pkg = file.Name.Name
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		s.imports = append(s.imports, name)
	}
	s.funcs = map[string]int{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			s.funcs[funcName(f)] = fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1
		}
	}
	return s
}

// funcName returns the name of a function, with its receiver's type in front.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	x := f.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.IndexListExpr:
			x = e.X
		case *ast.Ident:
			return e.Name + "." + f.Name.Name
		default:
			return "?." + f.Name.Name
		}
	}
}

// checked is a package whose types are known.
type checked struct {
	fset  *token.FileSet
	files []*ast.File
	info  types.Info
}

// typeCheck returns the root package as built with the given tags.
func typeCheck(t *testing.T, tags string) *checked {
	t.Helper()
	p := &checked{fset: token.NewFileSet()}
	names := goList(t, "-tags", tags, "-f", `{{join .GoFiles "\n"}}`, ".")
	for _, name := range strings.Fields(names) {
		file, err := parser.ParseFile(p.fset, name, nil, 0)
		require.NoError(t, err)
		p.files = append(p.files, file)
	}
	// Its imports have been compiled, so their types are available.
	exports := map[string]string{}
	list := goList(t, "-tags", tags, "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	for line := range strings.Lines(list) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[path] = file
		}
	}
	p.check(t, importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	}))
	return p
}

// checkText returns a package with the given files, which import nothing.
func checkText(t *testing.T, files map[string]string) *checked {
	t.Helper()
	p := &checked{fset: token.NewFileSet()}
	for name, text := range files {
		file, err := parser.ParseFile(p.fset, name, text, 0)
		require.NoError(t, err)
		p.files = append(p.files, file)
	}
	p.check(t, nil)
	return p
}

func (p *checked) check(t *testing.T, from types.Importer) {
	t.Helper()
	p.info = types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: from}
	_, err := config.Check("p", p.fset, p.files, &p.info)
	require.NoError(t, err)
}

// upwards returns the calls from one of the layers to a higher one, and the files that are in no
// layer. A function that is named without being called counts as well. A call through an interface
// or a variable does not, because its target is unknown.
func (p *checked) upwards(layers [][]string) (found []string) {
	layerOf := func(file string) int {
		return slices.IndexFunc(layers, func(files []string) bool { return isAny(file, files) })
	}
	for _, f := range p.files {
		from := p.file(f.Pos())
		if layerOf(from) < 0 {
			found = append(found, from+" is in no layer")
			continue
		}
		for _, d := range f.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				id, _ := n.(*ast.Ident)
				callee, to := p.function(id)
				if callee != "" && layerOf(to) >= 0 && layerOf(to) < layerOf(from) {
					call := from + ": " + declName(d, n) + " calls " + to + ": " + callee
					found = append(found, call)
				}
				return true
			})
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// function returns the name and the file of the function of this package to which id refers. Both
// are empty if id refers to something else, or to a method of an interface.
func (p *checked) function(id *ast.Ident) (name, file string) {
	fn, ok := p.info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "p" {
		return "", ""
	}
	fn = fn.Origin()
	name = fn.Name()
	if recv := fn.Signature().Recv(); recv != nil {
		of := recv.Type()
		if p, ok := of.(*types.Pointer); ok {
			of = p.Elem()
		}
		if types.IsInterface(of) {
			return "", ""
		}
		name = of.(*types.Named).Obj().Name() + "." + name
	}
	return name, p.file(fn.Pos())
}

func (p *checked) file(at token.Pos) string { return p.fset.Position(at).Filename }

// declName returns the name of a declaration, or of the variable in it that contains n.
func declName(d ast.Decl, n ast.Node) string {
	if f, ok := d.(*ast.FuncDecl); ok {
		return funcName(f)
	}
	for _, spec := range d.(*ast.GenDecl).Specs {
		v, ok := spec.(*ast.ValueSpec)
		if ok && v.Pos() <= n.Pos() && n.Pos() < v.End() {
			return v.Names[0].Name
		}
	}
	return "a declaration"
}
