// Package moving has, for each library of docs/moving.md, a program that uses it and the same
// program with ringcache. The tests run both, and compare the tables of the page with them.
package moving

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// library is one that the page has a table for.
type library struct {
	name, path string
	// not are exported types that callers of the cache do not use, or use by their fields only.
	not []string
}

func (l library) dir() string { return strings.ReplaceAll(strings.ToLower(l.name), "-", "") }

var libraries = []library{
	{"fastcache", "github.com/VictoriaMetrics/fastcache", nil},
	{"BigCache", "github.com/allegro/bigcache/v3", nil},
	{"freecache", "github.com/coocood/freecache", []string{"RingBuf"}},
	{"go-cache", "github.com/patrickmn/go-cache", nil},
	{"ttlcache", "github.com/jellydator/ttlcache/v3", nil},
	{"ristretto", "github.com/dgraph-io/ristretto/v2", []string{"Metrics"}},
	{"expirable", "github.com/hashicorp/golang-lru/v2/expirable", nil},
}

func TestPrograms_PrintTheSame(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			before, after := run(t, l, "before"), run(t, l, "after")
			require.NotEmpty(t, before)
			require.Equal(t, before, after)
		})
	}
}

// run runs a program, and returns what it prints.
func run(t *testing.T, l library, program string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), program)
	goCommand(t, "build", "-o", name, "./"+l.dir()+"/"+program)
	cmd := exec.Command(name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s/%s", l.dir(), program)
	return string(out)
}

func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	require.NoError(t, err, "go %v", args)
	return string(out)
}

// row is a line of a table: the cells about the library, and about ringcache.
type row struct{ old, new, line string }

// table returns the rows of the table of a library.
func table(t *testing.T, l library) (rows []row) {
	t.Helper()
	page, err := os.ReadFile("../../docs/moving.md")
	require.NoError(t, err)
	inside := false
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "/"), "|")
		switch {
		case len(cells) < 4:
			inside = false
		case strings.TrimSpace(cells[1]) == l.name && strings.TrimSpace(cells[2]) == "ringcache":
			inside = true
		case inside:
			rows = append(rows, row{cells[1], cells[2], line})
		}
	}
	require.Greater(t, len(rows), 8, "the table of %s", l.name)
	return rows[1:] // without the line below the header
}

var (
	codeSpan = regexp.MustCompile("`[^`]+`")
	name     = regexp.MustCompile(`(^|[^\w"])([A-Z]\w*\*?)`) // with a star, the beginning of several
)

// namesIn returns the exported names in the code of a cell.
func namesIn(cell string) (names []string) {
	for _, span := range codeSpan.FindAllString(cell, -1) {
		for _, m := range name.FindAllStringSubmatch(strings.Trim(span, "`"), -1) {
			names = append(names, m[2])
		}
	}
	return names
}

// has reports whether one of the names is that one, or begins it.
func has(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		prefix, several := strings.CutSuffix(n, "*")
		return n == name || several && strings.HasPrefix(name, prefix)
	})
}

// A table names every function, method, constant, variable and setting of its library.
func TestTables_NameAllOfALibrary(t *testing.T) {
	for _, l := range libraries {
		var named, missing []string
		for _, r := range table(t, l) {
			named = append(named, namesIn(r.old)...)
		}
		for _, n := range exported(t, l) {
			if !has(named, n) {
				missing = append(missing, n)
			}
		}
		assert.Empty(t, missing, l.name)
	}
}

// exported returns the names of a library's API.
func exported(t *testing.T, l library) (names []string) {
	t.Helper()
	exports := map[string]string{}
	list := goCommand(t, "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", l.path)
	for line := range strings.Lines(list) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	pkg, err := from.Import(l.path)
	require.NoError(t, err)
	for _, n := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(n)
		if !object.Exported() || slices.Contains(l.not, n) {
			continue
		}
		if _, ok := object.(*types.TypeName); !ok {
			names = append(names, n)
			continue
		}
		if types.IsInterface(object.Type()) {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(object.Type()))
		for i := range methods.Len() {
			names = append(names, methods.At(i).Obj().Name())
		}
		if s, ok := object.Type().Underlying().(*types.Struct); ok && n == "Config" {
			for i := range s.NumFields() {
				names = append(names, s.Field(i).Name())
			}
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !token.IsExported(n) })
	slices.Sort(names)
	return slices.Compact(names)
}

// What a row says is what the programs do: that of before uses the names of the first cell, that of
// after the names of the second. A row without a counterpart is not tried.
func TestTables_AreTriedByThePrograms(t *testing.T) {
	for _, l := range libraries {
		api, tried := exported(t, l), 0
		before, after := identifiers(t, l, "before"), identifiers(t, l, "after")
		for _, r := range table(t, l) {
			if len(namesIn(r.new)) == 0 {
				continue
			}
			for _, n := range namesIn(r.old) {
				isMeant := func(id string) bool { return has([]string{n}, id) }
				if !slices.ContainsFunc(api, isMeant) {
					continue // of another package, or of ringcache
				}
				tried++
				assert.True(t, slices.ContainsFunc(before, isMeant),
					"%s/before does not use %s of %s", l.dir(), n, r.line)
			}
			for _, n := range namesIn(r.new) {
				tried++
				assert.True(t, has(after, n), "%s/after does not use %s of %s", l.dir(), n, r.line)
			}
		}
		assert.Greater(t, tried, 20, l.name)
	}
}

// identifiers returns the names that a program uses.
func identifiers(t *testing.T, l library, program string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(
		token.NewFileSet(), filepath.Join(l.dir(), program, "main.go"), nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}
