package ringcache_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is a root file that is no test.
type source struct {
	name    string
	imports []string
	lines   int
}

func sources(t *testing.T) []source {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []source
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		s := source{name: name, lines: bytes.Count(text, []byte("\n"))}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			s.imports = append(s.imports, path)
		}
		all = append(all, s)
	}
	if len(all) < 5 {
		t.Fatalf("only %d files found: the rules would not be checked", len(all))
	}
	return all
}

// isAny reports whether name matches one of the patterns.
func isAny(name string, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := filepath.Match(p, name)
		return err == nil && ok
	})
}

// A bucket is locked by the methods of aside.go, which see to what was put aside,
// and by lookups, which look at it.
func TestLayout_Locks(t *testing.T) {
	direct := regexp.MustCompile(`\b(b|lb|other)\.mu\.(Lock|hold|exclude|share)\(\)`)
	for _, s := range sources(t) {
		text, err := os.ReadFile(s.name)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"aside.go": 3, "cache.go": 2, "batch.go": 1}[s.name] // lock, hold twice; View twice; for a hint
		if got := direct.FindAll(text, -1); len(got) != want {
			t.Errorf("%s takes the lock of a bucket itself %d times, want %d", s.name, len(got), want)
		}
	}
}

// The arrows of docs/design.md, as far as imports show them: a flat package has
// no walls that the compiler would keep.
func TestLayout_Imports(t *testing.T) {
	outside := []string{"github.com/ringcache/ringcache/internal/policy", "github.com/cespare/xxhash/v2", "golang.org/x/sys/cpu", "golang.org/x/sys/unix", "golang.org/x/sys/windows"}
	for _, s := range sources(t) {
		for _, path := range s.imports {
			switch {
			case path == "unsafe" && !isAny(s.name, "chunk*.go", "index.go", "lock.go", "prefetch*.go", "typed_unsafe.go"):
				t.Errorf("%s imports unsafe", s.name)
			case path == "testing" || path == "os" || path == "log":
				t.Errorf("%s imports %s", s.name, path)
			case strings.Contains(path, ".") && !slices.Contains(outside, path):
				t.Errorf("%s imports %s, which is not one of the library's packages", s.name, path)
			case path == "golang.org/x/sys/cpu":
				if s.name != "glance_asm.go" {
					t.Errorf("%s imports %s: what the processor can is for glances to know", s.name, path)
				}
			case strings.HasPrefix(path, "golang.org/x/sys/") && !isAny(s.name, "chunk*.go"):
				t.Errorf("%s imports %s: the operating system is chunk's to call", s.name, path)
			case isAny(s.name, "record.go", "ring.go") && isAny(path, "sync", "sync/*", "time"):
				t.Errorf("%s imports %s: the bucket's lock is held there", s.name, path)
			}
		}
	}
}

func TestLayout_FilesAreShort(t *testing.T) {
	const most = 500
	for _, s := range sources(t) {
		if s.lines > most {
			t.Errorf("%s has %d lines, at most %d", s.name, s.lines, most)
		}
	}
}

// What only tests and benchmarks use must not reach a user's binary.
func TestLayout_Dependencies(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command on this machine")
	}
	out, err := exec.Command(goTool, "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "github.com/cespare/xxhash/v2") {
		t.Fatalf("go list found %d packages, but not xxhash", len(deps))
	}
	for _, dep := range deps {
		for _, part := range []string{"testify", "bigcache", "go-cache", "fastcache", "freecache", "internal/refcache", "internal/workload"} {
			if strings.Contains(dep, part) {
				t.Errorf("the library depends on %s", dep)
			}
		}
		// net/http is what expvarstats is a package of its own for.
		if slices.Contains([]string{"testing", "expvar", "net/http"}, dep) {
			t.Errorf("the library depends on %s", dep)
		}
	}
}
