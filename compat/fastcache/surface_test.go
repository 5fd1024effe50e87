package fastcache

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	theirs "github.com/VictoriaMetrics/fastcache"
	"github.com/stretchr/testify/require"
)

// What programs can name of fastcache is here too, with the same types.
func TestSurface_HasAllOfFastcache(t *testing.T) {
	dir := goCommand(t, ".", "list", "-m", "-f", "{{.Dir}}", "github.com/VictoriaMetrics/fastcache")
	want, have := surface(t, dir), surface(t, ".")
	require.Greater(t, len(want), 30)
	for name, form := range want {
		require.Equal(t, form, have[name], name)
	}
	require.Contains(t, have, "Stats.EvictedBytes", "which 1.13.0 has")
}

// surface returns the exported names of the package in dir and their types: of functions, methods
// and fields.
func surface(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	names := map[string]string{}
	add := func(name string, form any) {
		var b bytes.Buffer
		require.NoError(t, printer.Fprint(&b, token.NewFileSet(), form))
		names[name] = b.String()
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					addFunc(add, d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(add, spec)
				}
			}
		}
	}
	return names
}

func addFunc(add func(string, any), d *ast.FuncDecl) {
	name := d.Name.Name
	if d.Recv != nil {
		if star, ok := d.Recv.List[0].Type.(*ast.StarExpr); ok {
			of := star.X.(*ast.Ident)
			if !of.IsExported() {
				return
			}
			name = of.Name + "." + name
		}
	}
	for _, fields := range []*ast.FieldList{d.Type.Params, d.Type.Results} {
		if fields == nil {
			continue
		}
		var unnamed []*ast.Field // k, v []byte is two of them
		for _, f := range fields.List {
			for range max(1, len(f.Names)) {
				unnamed = append(unnamed, &ast.Field{Type: f.Type})
			}
		}
		fields.List = unnamed
	}
	add(name, d.Type)
}

func addSpec(add func(string, any), spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				add(name.Name, ast.NewIdent("value"))
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		add(s.Name.Name, ast.NewIdent("type"))
		if fields, ok := s.Type.(*ast.StructType); ok {
			for _, f := range fields.Fields.List {
				if f.Names == nil {
					add(s.Name.Name+" has", f.Type)
				}
				for _, name := range f.Names {
					if name.IsExported() {
						add(s.Name.Name+"."+name.Name, f.Type)
					}
				}
			}
		}
	}
}

// Big values count as fastcache counts them, as long as it has them in one part too.
func TestSurface_BigValuesCountAlike(t *testing.T) {
	ours, other := New(64<<20), theirs.New(64<<20)
	defer ours.Reset()
	defer other.Reset()
	for i, n := range []int{0, 1, 1000, 60_000} {
		k, v := []byte{byte(i)}, bytes.Repeat([]byte{byte(i), 1, 2}, n/3+1)[:n]
		for range 2 { // the second time in place of the first
			ours.SetBig(k, v)
			other.SetBig(k, v)
		}
		require.Equal(t, other.GetBig(nil, k), ours.GetBig(nil, k))
		ours.GetBig(nil, []byte("none"))
		other.GetBig(nil, []byte("none"))
		require.Equal(t, other.GetBig([]byte("a"), k), ours.GetBig([]byte("a"), k))
	}
	ours.Set([]byte("plain"), []byte("v"))
	other.Set([]byte("plain"), []byte("v"))
	ours.GetBig(nil, []byte("plain"))
	other.GetBig(nil, []byte("plain"))
	var have Stats
	var want theirs.Stats
	ours.UpdateStats(&have)
	other.UpdateStats(&want)
	require.Equal(t, want.GetCalls, have.GetCalls)
	require.Equal(t, want.SetCalls, have.SetCalls)
	require.Equal(t, want.Misses, have.Misses)
	require.Equal(t, want.EntriesCount, have.EntriesCount)
	require.Equal(t, BigStats(want.BigStats), have.BigStats)
}
