package ringcache_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lookup takes a few dozen nanoseconds, so the benchmarks show a call that is no longer inlined,
// or a function that has grown. These tests detect both without measuring.

// hotFunc is a function on the path of every lookup or Set.
type hotFunc struct {
	file, name string
	symbol     string   // the end of its name in an object file
	most       int      // bytes of machine code
	inlined    []string // calls that the compiler must inline in it
}

// The figures are for codeGo on linux/amd64. A change that makes a function smaller lowers its
// figure; a change that makes it larger needs a benchmark that shows no loss.
var hotFuncs = []hotFunc{
	{"lookup.go", "Cache.find", "ringcache.(*Cache).find", 2117, []string{
		"(*bucket).isUnchanged", "clock.(*Clock).FreshAt", "index.(*Group).Prefetch",
		"index.(*Index).Geometry", "index.(*Index).Group", "index.Geometry.Home", "index.Raise",
		"store.(*Shared).LargeKeysOf", "stripe.(*Counters).Here", "torn.Append", "torn.Overlaps",
	}},
	{"lookup.go", "engine.locate", "ringcache.(*engine).locate", 229, []string{
		"(*engine).bucket", "store.(*Shared).Mix",
	}},
	{"internal/store/read.go", "Store.Candidate", "store.(*Store).Candidate", 584, []string{
		"index.(*Group).Matches", "index.(*Group).Overflow", "index.(*Window).Live",
		"index.FirstSlot", "index.Ring", "index.SameHash", "ring.(*Ring).Run", "torn.Delay",
	}},
	{"internal/store/read.go", "ValueIn", "store.ValueIn", 469, []string{
		"torn.Delay", "record.Form.ParseShort", "record.Header.Total",
		"torn.Equal",
	}},
	{"internal/store/store.go", "Store.Set", "store.(*Store).Set", 917, []string{
		"(*Store).hasForgotten", "(*Write).why", "index.(*Index).Empty", "index.Ring",
	}},
}

// codeGo is the version of Go for which the figures hold: other versions inline other calls.
const codeGo = "go1.26"

func TestCode_HotCallsAreInlined(t *testing.T) {
	t.Parallel()
	report := hotBuild(t, "build", "-gcflags=-m")
	for _, f := range hotFuncs {
		first, last := linesOf(t, f)
		got := inlinedCalls(report, f.file, first, last)
		require.NotEmpty(t, got, f.name)
		assert.Subset(t, got, f.inlined, "%s in %s", f.name, f.file)
	}
}

func TestCode_HotFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	sizes := map[string]int{}
	for file := range strings.Lines(hotBuild(t, "list", "-export", "-f", "{{.Export}}")) {
		for line := range strings.Lines(hotCommand(t, "tool", "nm", "-size", strings.TrimSpace(file))) {
			// address, size, T, symbol
			if fields := strings.Fields(line); len(fields) == 4 && fields[2] == "T" {
				size, err := strconv.Atoi(fields[1])
				require.NoError(t, err, line)
				sizes[fields[3]] = size
			}
		}
	}
	for _, f := range hotFuncs {
		size := 0
		for symbol, n := range sizes {
			if strings.HasSuffix(symbol, "/"+f.symbol) {
				size = n
			}
		}
		require.Positive(t, size, "no symbol ends in %s", f.symbol)
		assert.LessOrEqual(t, size, f.most, "bytes of the machine code of %s", f.name)
	}
}

// hotBuild returns the output of the go command for the packages of hotFuncs.
func hotBuild(t *testing.T, args ...string) string {
	t.Helper()
	return hotCommand(t, append(args, ".", "./internal/store")...)
}

// hotCommand runs the go command with the settings for which the figures hold, regardless of those
// of the test itself, and returns its output.
func hotCommand(t *testing.T, args ...string) string {
	t.Helper()
	const platform = "linux/amd64"
	here := runtime.GOOS + "/" + runtime.GOARCH
	if here != platform || !strings.HasPrefix(runtime.Version(), codeGo+".") {
		t.Skipf("the figures are of %s on %s, this is %s on %s",
			codeGo, platform, runtime.Version(), here)
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command on this machine")
	}
	cmd := exec.Command(tool, args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOAMD64=v1", "GOEXPERIMENT=", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
	return string(out)
}

// linesOf returns the first and the last line of a function.
func linesOf(t *testing.T, f hotFunc) (first, last int) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, f.file, nil, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && funcName(fn) == f.name {
			return fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
		}
	}
	require.Fail(t, "no function "+f.name, "in %s", f.file)
	return 0, 0
}

var inliningCall = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: inlining call to (.+)$`)

// inlinedCalls returns the calls between two lines of a file that are inlined according to the
// compiler's report.
func inlinedCalls(report, file string, first, last int) (calls []string) {
	for _, m := range inliningCall.FindAllStringSubmatch(report, -1) {
		line, err := strconv.Atoi(m[2])
		if err == nil && filepath.ToSlash(filepath.Clean(m[1])) == file && first <= line && line <= last {
			calls = append(calls, m[3])
		}
	}
	return calls
}
