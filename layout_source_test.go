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

// The input of layout_test.go: source files, and the calls and locks within a package.

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
	p.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
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

// lockUse is what a function does with the mutexes of its package, by their names.
type lockUse struct {
	takes map[string]bool // it waits for them, or a function that it calls does
	ends  map[string]bool // true: held when it returns; false: no longer held then
	under map[string]bool // held while it calls functions that it was given
}

// lockWalk follows functions, as if all branches were taken.
type lockWalk struct {
	*checked
	order  []string
	mus    map[types.Object]string // the names of the mutexes
	names  map[types.Object]string // of the functions
	bodies map[types.Object]ast.Node
	uses   map[types.Object]lockUse
	bad    []string

	name string // the function that is followed
	use  lockUse
	held []string
	late []func() // deferred
}

// outOfOrder returns where a function waits for a mutex while it holds one that is not before it in
// order, and the mutexes that are not in order. A mutex has the name of its struct, or of the field
// that is its struct, and its own; that of a variable lb is a large bucket's.
func (p *checked) outOfOrder(order []string) []string {
	w := &lockWalk{checked: p, order: order, mus: map[types.Object]string{},
		names: map[types.Object]string{}, bodies: map[types.Object]ast.Node{},
		uses: map[types.Object]lockUse{}}
	for _, f := range p.files {
		ast.Inspect(f, w.enter)
	}
	for fn := range w.bodies {
		w.useOf(fn)
	}
	for known := -1; ; { // until nothing is new
		next, size := map[types.Object]lockUse{}, 0
		w.bad = nil
		for fn, body := range w.bodies {
			use := w.follow(w.names[fn], body)
			next[fn], size = use, size+len(use.takes)+len(use.ends)+len(use.under)
		}
		if w.uses = next; size == known {
			break
		}
		known = size
	}
	for _, name := range w.mus {
		if !slices.Contains(order, name) {
			w.bad = append(w.bad, name+" has no place in the order")
		}
	}
	slices.Sort(w.bad)
	return slices.Compact(w.bad)
}

// enter enters the functions and the mutexes that n declares.
func (w *lockWalk) enter(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.TypeSpec:
		w.enterMutexes(n.Name.Name, n.Type)
	case *ast.FuncDecl:
		fn := w.info.Defs[n.Name]
		w.bodies[fn], w.names[fn] = n.Body, funcName(n)
	case *ast.AssignStmt: // of a function to a new variable
		id, _ := n.Lhs[0].(*ast.Ident)
		fn := w.info.Defs[id]
		if lit, ok := n.Rhs[0].(*ast.FuncLit); ok && fn != nil {
			w.bodies[fn], w.names[fn] = lit.Body, id.Name
		}
	}
	return true
}

func (w *lockWalk) enterMutexes(owner string, of ast.Expr) {
	s, ok := of.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, id := range f.Names {
			v := w.info.Defs[id]
			if t, ok := v.Type().(*types.Named); ok && strings.HasSuffix(t.Obj().Name(), "Mutex") {
				w.mus[v] = owner + "." + id.Name
			}
			w.enterMutexes(id.Name, f.Type)
		}
	}
}

// useOf returns the use of fn, and follows fn if it is not known. Callees come first: a function
// whose call of unlock was not known yet would seem to return with the lock held, and functions
// that call each other would pass that on for ever.
func (w *lockWalk) useOf(fn types.Object) lockUse {
	if _, known := w.uses[fn]; !known && w.bodies[fn] != nil {
		w.uses[fn] = lockUse{} // of its calls to itself
		inner := *w
		w.uses[fn] = inner.follow(w.names[fn], w.bodies[fn])
	}
	return w.uses[fn]
}

func (w *lockWalk) follow(name string, body ast.Node) lockUse {
	w.name, w.held, w.late = name, nil, nil
	w.use = lockUse{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	w.walk(body)
	for _, do := range slices.Backward(w.late) {
		do()
	}
	for _, lock := range w.held {
		if w.wasFreed(lock) { // only for a while
			delete(w.use.ends, lock)
		} else {
			w.use.ends[lock] = true
		}
	}
	return w.use
}

func (w *lockWalk) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt: // another goroutine
			return false
		case *ast.DeferStmt:
			w.call(n.Call, func(do func()) { w.late = append(w.late, do) })
			return false
		case *ast.CallExpr:
			w.call(n, func(do func()) { do() })
			return false
		case *ast.Ident: // perhaps of a function that is called by the one that gets it
			for lock := range w.useOf(w.object(n)).takes {
				w.take(lock)
			}
		}
		return true
	})
}

// call follows a call; when does what changes held: at once, or at the end of the function.
func (w *lockWalk) call(c *ast.CallExpr, when func(do func())) {
	id, _ := c.Fun.(*ast.Ident)
	of := c.Fun // the receiver
	if s, ok := c.Fun.(*ast.SelectorExpr); ok {
		id, of = s.Sel, s.X
	}
	mu, _ := of.(*ast.SelectorExpr)
	lock := ""
	if mu != nil {
		if lock = w.mus[w.info.Uses[mu.Sel]]; lock != "" {
			of = mu.X
		}
	}
	named := func(lock string) string {
		if x, ok := of.(*ast.Ident); ok && x.Name == "lb" {
			return "large " + lock
		}
		return lock
	}
	if lock != "" {
		when(func() { w.change(id.Name, named(lock)) })
		return
	}
	if of != id {
		w.walk(of)
	}
	use, held := w.useOf(w.object(id)), w.held
	for lock := range use.takes {
		w.take(named(lock))
	}
	w.mayCall(id)
	for lock := range use.under {
		w.held = append(slices.Clone(w.held), named(lock))
	}
	for _, arg := range c.Args {
		if id, ok := arg.(*ast.Ident); ok {
			w.mayCall(id)
		}
		w.walk(arg)
	}
	w.held = held
	for lock, held := range use.ends {
		when(func() { w.change(map[bool]string{true: "TryLock", false: "Unlock"}[held], named(lock)) })
	}
}

// change follows a method of a mutex.
func (w *lockWalk) change(method, lock string) {
	i := slices.Index(w.held, lock)
	switch {
	case method == "Unlock" && i >= 0:
		w.held = slices.Delete(slices.Clone(w.held), i, i+1)
	case method == "Unlock":
		w.use.ends[lock] = false
	default:
		if method == "Lock" && !w.wasFreed(lock) {
			w.take(lock)
		}
		w.held = append(slices.Clone(w.held), lock)
	}
}

// wasFreed reports whether the function has unlocked a mutex that its caller holds.
func (w *lockWalk) wasFreed(lock string) bool {
	held, ok := w.use.ends[lock]
	return ok && !held
}

// mayCall notes what is held if id is a variable with a function that is not known.
func (w *lockWalk) mayCall(id *ast.Ident) {
	v, ok := w.object(id).(*types.Var)
	if !ok || w.bodies[v] != nil {
		return
	}
	if _, ok = v.Type().Underlying().(*types.Signature); ok {
		for _, lock := range w.held {
			w.use.under[lock] = true
		}
	}
}

// take notes that the function waits for a mutex, with what it holds.
func (w *lockWalk) take(lock string) {
	w.use.takes[lock] = true
	for _, held := range w.held {
		if slices.Index(w.order, held) >= slices.Index(w.order, lock) {
			w.bad = append(w.bad, w.name+" takes "+lock+" under "+held)
		}
	}
}

// object returns what id refers to.
func (w *lockWalk) object(id *ast.Ident) types.Object {
	of := w.info.Uses[id]
	if fn, ok := of.(*types.Func); ok {
		return fn.Origin()
	}
	return of
}
