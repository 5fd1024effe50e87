package ringcache_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The layout of docs/design.md: which files and packages may use which others, and the maximum
// length of files and functions. The compiler prevents import cycles, and these tests check the
// other rules.

const (
	mostRootFiles = 25 // Go files at the root that are no tests
	mostRootTests = 20 // and files of tests
	mostFileLines = 500
	mostFuncLines = 60
	mostColumns   = 100
)

// longFuncs are the functions that may have more than mostFuncLines lines, as "file: function",
// with the reason for each.
var longFuncs = map[string]string{}

// layers are the files of the root package, from the top layer down. A file calls functions of its
// own layer or of lower ones.
var layers = [][]string{
	{"hook.go"},
	{"open.go", "snapshot*.go", "typed*.go"},
	{"namespace.go"},
	{"batch.go", "conditional.go", "entries.go", "loader.go", "resize.go", "stats.go"},
	{"expiry.go", "write.go"},
	{"large.go", "lookup.go"},
	{"cache.go"},
	{"bucket.go", "options.go"},
	{"chunk_*.go", "doc.go", "errors.go"},
}

// unsafeFiles may import unsafe.
var unsafeFiles = []string{
	"chunk_*.go", "hook.go", "internal/torn/torn.go", "typed.go",
	"internal/chunk/*.go", "internal/index/*.go",
	"internal/ring/ring.go", "internal/ringfile/ringfile.go",
	"internal/ringfile/file_holes_unix.go",
	"internal/stripe/stripe.go",
}

// sysFiles may import golang.org/x/sys.
var sysFiles = []string{
	"chunk_mmap.go", "internal/clock/boot_*.go", "internal/ringfile/file_*.go",
}

// osFiles may import os, because they deal with files.
var osFiles = []string{
	"snapshot*.go", "internal/atomicfile/*.go", "internal/sidefile/*.go",
	"internal/osfile/*.go", "internal/clock/boot_linux.go",
}

// wall is the set of imports that a package may have.
type wall struct {
	ours   []string // of internal and from other modules, golang.org/x/sys left aside
	std    []string // if there are any: all that it may use of the standard library
	notStd []string // what it may not use of the standard library
}

// noHelpers are imports that no part of the library needs.
var noHelpers = []string{"os", "log", "testing"}

// walls has each package of the library by its folder.
var walls = map[string]wall{
	".": {
		ours: []string{"atomicfile", "chunk", "clock", "cold", "generation",
			"index", "memo", "osfile", "policy", "record", "ringfile", "scratch",
			"sidefile", "singleflight", "snapshot", "store", "stripe", "testhook", "torn",
			"github.com/cespare/xxhash/v2"},
		notStd: append([]string{"encoding/json"}, noHelpers...),
	},
	"codec": {
		ours: []string{"memo"},
		std:  []string{"encoding", "encoding/json", "sync"},
	},
	"internal/memo": {
		ours: []string{"stripe", "torn", "github.com/cespare/xxhash/v2"},
		std:  []string{"math/bits", "math/rand/v2", "sync", "sync/atomic"},
	},
	"internal/store": {
		ours: []string{"chunk", "clock", "cold", "generation", "index", "policy",
			"record", "ring", "ringfile", "scratch", "torn", "github.com/cespare/xxhash/v2"},
		notStd: noHelpers,
	},
	"internal/cold": {
		ours: []string{"sidefile", "github.com/cespare/xxhash/v2"}, notStd: noHelpers,
	},
	"internal/scratch":          {std: []string{"sync"}},
	"compress/internal/rawdict": {std: []string{}},
	"compress/s2": {
		ours: []string{"github.com/ringcache/ringcache",
			"github.com/ringcache/ringcache/compress/internal/rawdict",
			"github.com/klauspost/compress/s2"},
		notStd: noHelpers,
	},
	"compress/zstd": {
		ours: []string{"github.com/ringcache/ringcache",
			"github.com/ringcache/ringcache/compress/internal/rawdict",
			"github.com/klauspost/compress/zstd"},
		notStd: noHelpers,
	},
	"internal/testhook": {
		ours: []string{"chunk", "clock", "snapshot", "store", "stripe"}, notStd: noHelpers,
	},
	"adapters/internal/metrics": {
		ours:   []string{"github.com/ringcache/ringcache"},
		notStd: noHelpers,
	},
	"adapters/internal/near": {
		ours:   []string{"github.com/ringcache/ringcache"},
		notStd: noHelpers,
	},
	"internal/osfile":     {notStd: noHelpers},
	"internal/atomicfile": {ours: []string{"osfile"}, notStd: noHelpers},
	"internal/sidefile":   {ours: []string{"osfile", "github.com/cespare/xxhash/v2"}},
	"internal/snapshot": {
		ours: []string{"clock", "policy", "record", "github.com/cespare/xxhash/v2",
			"github.com/klauspost/compress/s2"},
		notStd: noHelpers,
	},
	"internal/chunk":      {notStd: noHelpers},
	"internal/clock":      {ours: []string{"github.com/cespare/xxhash/v2"}, notStd: noHelpers},
	"internal/generation": {notStd: noHelpers},
	"internal/index": {
		ours:   []string{"chunk", "policy"},
		notStd: noHelpers,
	},
	"internal/policy": {std: []string{"math", "math/bits"}},
	"internal/record": {notStd: append([]string{"sync", "sync/atomic", "time"}, noHelpers...)},
	"internal/ring": {
		ours: []string{"chunk", "index", "record", "ringfile", "torn",
			"github.com/cespare/xxhash/v2"},
		notStd: noHelpers,
	},
	"internal/ringfile": {
		ours:   []string{"chunk", "clock", "osfile", "github.com/cespare/xxhash/v2"},
		notStd: []string{"log", "testing"},
	},
	"internal/singleflight": {notStd: noHelpers},
	"internal/stripe":       {notStd: noHelpers},
	"internal/torn":         {notStd: noHelpers},
}

// topLevel are the files and folders at the top level that are fixed, each with text that it must
// contain: the code whose name it bears.
var topLevel = map[string]string{
	"go.mod":               "module github.com/ringcache/ringcache\n",
	"cache.go":             "type Cache struct {",
	"bucket.go":            "func (b *bucket) lock() {",
	"chunk_mmap.go":        "unix.Mmap(",
	"chunk_other.go":       "make([]uint64,",
	"cache_test.go":        "func TestCache_",
	"cache_timing_test.go": "func BenchmarkCache",
	"examples":             "",
}

func TestLayout_TopLevel(t *testing.T) {
	for name, part := range topLevel {
		if part == "" {
			assert.DirExists(t, name)
			continue
		}
		text, err := os.ReadFile(name)
		if assert.NoError(t, err) {
			assert.Contains(t, string(text), part, name)
		}
	}
}

func TestLayout_Sizes(t *testing.T) {
	root := 0
	for _, s := range sources(t) {
		if s.dir == "." {
			root++
		}
		assert.LessOrEqual(t, len(s.lines), mostFileLines, "lines of %s", s.path)
		for name, n := range s.funcs {
			if longFuncs[s.path+": "+name] == "" {
				assert.LessOrEqual(t, n, mostFuncLines, "lines of %s in %s", name, s.path)
			}
		}
	}
	assert.LessOrEqual(t, root, mostRootFiles, "Go files at the root")
}

// The tests at the root see the package from outside, and are few. The others are in
// internal/ringtest, or in the package that they test.
func TestLayout_Tests(t *testing.T) {
	root := 0
	for _, s := range tests(t) {
		if s.dir == "." {
			root++
			assert.Equal(t, "ringcache_test", s.pkg, "package of %s", s.path)
		}
		assert.LessOrEqual(t, len(s.lines), mostFileLines, "lines of %s", s.path)
	}
	assert.LessOrEqual(t, root, mostRootTests, "test files at the root")
}

func TestLayout_LinesAreShort(t *testing.T) {
	for _, s := range append(sources(t), tests(t)...) {
		for i, line := range s.lines {
			n := len([]rune(line))
			output := strings.HasPrefix(s.path, "example") && strings.HasPrefix(line, "\t//")
			if output || strings.HasPrefix(line, "//go:build ") {
				continue // cannot be split
			}
			assert.LessOrEqual(t, n, mostColumns, "columns in %s:%d", s.path, i+1)
		}
	}
}

// "go doc Policy" shows the constants of a type only if each is declared with that type.
func TestLayout_DocumentationShowsConstantsWithTheirType(t *testing.T) {
	fset, files := token.NewFileSet(), []*ast.File(nil)
	for _, s := range sources(t) {
		if s.dir == "." {
			f, err := parser.ParseFile(fset, s.path, nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, f)
		}
	}
	p, err := doc.NewFromFiles(fset, files, "github.com/ringcache/ringcache")
	require.NoError(t, err)
	for _, group := range p.Consts {
		require.Fail(t, "constants without a type", "%v", group.Names)
	}
	shown := map[string]int{}
	for _, of := range p.Types {
		for _, group := range of.Consts {
			shown[of.Name] += len(group.Names)
		}
	}
	require.Equal(t, map[string]int{"Policy": 2, "HugePages": 3, "RemovalReason": 5}, shown)
}

func TestLayout_Imports(t *testing.T) {
	const module = "github.com/ringcache/ringcache/"
	used := map[string]bool{}
	for _, s := range sources(t) {
		w, known := walls[s.dir]
		assert.True(t, known, "folder %s has no wall: say what it may import", s.dir)
		for _, path := range s.imports {
			switch {
			case path == "unsafe" && !isAny(s.path, unsafeFiles):
				assert.Fail(t, "unsafe", "%s imports it", s.path)
			case strings.HasPrefix(path, "golang.org/x/sys/"):
				assert.True(t, isAny(s.path, sysFiles), "%s imports %s", s.path, path)
			case strings.Contains(path, "."): // not of the standard library
				name := strings.TrimPrefix(path, module+"internal/")
				assert.Contains(t, w.ours, name, "%s imports %s", s.path, path)
				used[s.dir+" "+name] = true
			case path == "os" && isAny(s.path, osFiles):
			case w.std != nil:
				assert.Contains(t, w.std, path, "%s imports %s", s.path, path)
			default:
				assert.NotContains(t, w.notStd, path, "%s imports %s", s.path, path)
			}
		}
	}
	for dir, w := range walls {
		for _, name := range w.ours {
			assert.True(t, used[dir+" "+name], "%s need not import %s", dir, name)
		}
	}
}

// Calls go down, even where no import shows them.
func TestLayout_CallsGoDown(t *testing.T) {
	t.Parallel()
	for _, tags := range []string{"", "ringcache_heap"} {
		pkg := typeCheck(t, tags)
		for _, up := range pkg.upwards(layers) {
			assert.Fail(t, up, "with tags %q", tags)
		}
	}
}

// The test above detects violations.
func TestLayout_CallsGoDown_Bites(t *testing.T) {
	pkg := checkText(t, map[string]string{
		"top.go": `package p
			type Top struct{ low }
			func (t *Top) Do() { t.help(); Each(t.low.visit) }
			func Make[T any]() *T { return new(T) }
			var _ = low{}.get()`,
		"low.go": `package p
			type low struct{ top *Top; do doer; fn func() }
			type doer interface { Do() }
			func (l low) get() int { l.do.Do(); l.fn(); return 0 }
			func (l low) visit() { l.top.Do() }
			func (l low) help() { Make[int](); _ = l.top.Do }
			func Each(fn func()) { fn() }
			var table = []func() *string{Make[string]}`,
	})
	up := pkg.upwards([][]string{{"top.go"}, {"low.go"}})
	require.Equal(t, []string{
		"low.go: low.help calls top.go: Make",
		"low.go: low.help calls top.go: Top.Do",
		"low.go: low.visit calls top.go: Top.Do",
		"low.go: table calls top.go: Make",
	}, up)
	require.Empty(t, pkg.upwards([][]string{{"top.go", "low.go"}}))
	require.Len(t, pkg.upwards([][]string{{"l*.go"}, {"top.go"}}), 4, "the other way round")
	require.Equal(t, []string{"low.go is in no layer"}, pkg.upwards([][]string{{"top.go"}}))
}

// lockOrder are the mutexes of the root package in the order of docs/design.md. Those of other
// packages come after them, since no package knows the root.
var lockOrder = []string{
	"spaces.mu", "space.mu", "sizing.mu", "arena.mu", "bucket.mu", "large bucket.mu",
}

func TestLayout_LocksAreTakenInOrder(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		// Through checkLocked and inLargeLocked, which does not lock: write.inLarge.
		"engine.setInLarge takes large bucket.mu under large bucket.mu",
	}, typeCheck(t, "").outOfOrder(lockOrder))
	text, err := os.ReadFile("docs/design.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "\n## Lock order\n")
	for _, name := range lockOrder[:len(lockOrder)-1] {
		found := false
		_, rest, found = strings.Cut(rest, name)
		assert.True(t, found, "%s is not in docs/design.md, or in another place", name)
	}
}

// The test above detects violations.
func TestLayout_LocksAreTakenInOrder_Bites(t *testing.T) {
	pkg := checkText(t, map[string]string{
		"a.go": `package p
			type Mutex struct{}
			func (*Mutex) Lock() {}
			func (*Mutex) TryLock() bool { return true }
			func (*Mutex) Unlock() {}
			type arena struct{ mu Mutex; part struct{ mu Mutex } }
			type bucket struct{ mu, other Mutex }
			func (b *bucket) lock() { b.mu.Lock() }
			func (b *bucket) unlock() { b.mu.Unlock() }
			func (b *bucket) look(fn func()) { b.lock(); defer b.unlock(); fn() }
			func (a *arena) each(fn func()) { fn() }
			func (a *arena) inner(fn func()) { a.mu.Lock(); defer a.mu.Unlock(); a.each(fn) }`,
		"right.go": `package p
			func (a *arena) fine(b, lb *bucket) {
				a.part.mu.Lock()
				a.inner(func() { b.look(func() { lb.look(func() {}) }) })
				a.part.mu.Unlock()
				b.lock()
				if a.mu.TryLock() { defer a.mu.Unlock() }
				b.unlock()
				b.lock()
			}
			func (a *arena) pause() { a.mu.Unlock(); defer a.mu.Lock() }
			func (a *arena) pauses() { a.mu.Lock(); a.pause(); a.mu.Unlock() }
			func (a *arena) goes(b *bucket) { b.lock(); defer b.unlock(); go a.pauses() }`,
		"wrong.go": `package p
			func (a *arena) called(b *bucket) { b.lock(); a.pauses(); b.unlock() }
			func (a *arena) given(b *bucket) { b.look(a.pauses) }
			func (a *arena) inside(b *bucket) { b.look(func() { a.each(func() { a.pauses() }) }) }
			func (a *arena) twice(b, c *bucket) { b.lock(); defer b.unlock(); c.lock() }
			func (a *arena) above(b, lb *bucket) { lb.lock(); b.lock() }
			func (a *arena) local(b *bucket) {
				do := func(fn func()) { a.inner(fn) }
				do(func() { a.part.mu.Lock() })
			}`,
	})
	require.Equal(t, []string{
		"arena.above takes bucket.mu under large bucket.mu",
		"arena.called takes arena.mu under bucket.mu",
		"arena.given takes arena.mu under bucket.mu",
		"arena.inside takes arena.mu under bucket.mu",
		"arena.local takes part.mu under arena.mu",
		"arena.twice takes bucket.mu under bucket.mu",
		"bucket.other has no place in the order",
	}, pkg.outOfOrder([]string{"part.mu", "arena.mu", "bucket.mu", "large bucket.mu"}))
}

// Packages that only tests and benchmarks use must not be linked into a user's binary.
func TestLayout_Dependencies(t *testing.T) {
	deps := strings.Fields(goList(t, "-deps", "."))
	require.Contains(t, deps, "github.com/cespare/xxhash/v2")
	for _, dep := range deps {
		for _, part := range []string{"testify", "bigcache", "go-cache", "fastcache", "freecache"} {
			assert.NotContains(t, dep, part)
		}
	}
	assert.NotSubset(t, deps, []string{"testing"})
	assert.NotSubset(t, deps, []string{"expvar"})
	assert.NotSubset(t, deps, []string{"net/http"})
}

// isAny reports whether name matches one of the patterns.
func isAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := filepath.Match(p, name)
		return err == nil && ok
	})
}

// goList returns the output of go list.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command on this machine")
	}
	out, err := exec.Command(tool, append([]string{"list"}, args...)...).Output()
	require.NoError(t, err, fmt.Sprint(args))
	return string(out)
}
