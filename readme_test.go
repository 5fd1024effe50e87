package ringcache_test

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
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

// The code in the documentation must work: this file builds it, compares it with the examples, and
// follows the links.

// snippet is a piece of Go code that a page shows.
type snippet struct {
	from string
	code string
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// pages returns the names of all Markdown files that belong to the root.
func pages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, more := range []string{"docs/*.md", "docs/decisions/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(more)
		require.NoError(t, err)
		names = append(names, found...)
	}
	return names
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// snippetsOf returns the Go code of a Markdown page.
func snippetsOf(t *testing.T, page string) []snippet {
	t.Helper()
	var all []snippet
	for i, m := range goBlock.FindAllStringSubmatch(readText(t, page), -1) {
		all = append(all, snippet{fmt.Sprintf("%s, block %d", page, i+1), m[1]})
	}
	return all
}

// packageSnippets returns the code of the package page.
func packageSnippets(t *testing.T) []snippet {
	t.Helper()
	const mode = parser.ParseComments | parser.PackageClauseOnly
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, mode)
	require.NoError(t, err)
	var p comment.Parser
	var all []snippet
	for _, block := range p.Parse(file.Doc.Text()).Content {
		if code, ok := block.(*comment.Code); ok {
			all = append(all, snippet{fmt.Sprintf("doc.go, block %d", len(all)+1), code.Text})
		}
	}
	return all
}

// exampleBody returns the statements of an example in the form in which a page shows them.
func exampleBody(t *testing.T, name string) string {
	t.Helper()
	const file = "example_test.go"
	text := readText(t, file)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			body := text[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
			body, _, _ = strings.Cut(body, "\t// Output:")
			return strings.TrimSpace(strings.ReplaceAll(body, "\n\t", "\n")) + "\n"
		}
	}
	require.Fail(t, "there is no such function", "%s in %s", name, file)
	return ""
}

func TestReadme_FirstSnippetIsTheExample(t *testing.T) {
	want := exampleBody(t, "Example")
	for _, all := range [][]snippet{snippetsOf(t, "README.md"), packageSnippets(t)} {
		require.NotEmpty(t, all, "a page shows no code")
		assert.Equal(t, want, all[0].code, all[0].from)
	}
}

// fragmentImports are the packages that a fragment may name.
var fragmentImports = []string{"context", "errors", "expvar", "fmt", "log", "net", "os", "time",
	"github.com/ringcache/ringcache", "github.com/ringcache/ringcache/codec"}

// program returns a file for a snippet: a whole file unchanged, a fragment in a function with the
// variables that the pages assume.
func (s snippet) program() string {
	if strings.HasPrefix(s.code, "package ") || strings.Contains(s.code, "\npackage ") {
		return s.code
	}
	var b strings.Builder
	b.WriteString("package fragment\n\n")
	for _, path := range fragmentImports {
		if strings.Contains(s.code, filepath.Base(path)+".") || strings.HasSuffix(path, "/ringcache") {
			fmt.Fprintf(&b, "import %q\n", path)
		}
	}
	const params = "cache *ringcache.Cache, key, value []byte, keys [][]byte"
	fmt.Fprintf(&b, "\nfunc _(%s) {\n{\n%s}\n}\n", params, s.code)
	return b.String()
}

// The README's program is the one that examples/quickstart runs in its test.
func TestReadme_ShowsTheQuickstart(t *testing.T) {
	quickstart := readText(t, "examples/quickstart/main.go")
	shown := slices.ContainsFunc(snippetsOf(t, "README.md"), func(s snippet) bool {
		return s.code == quickstart
	})
	require.True(t, shown, "examples/quickstart/main.go is not in README.md")
}

func TestReadme_CodeBuilds(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command on this machine")
	}
	all := packageSnippets(t)
	for _, page := range pages(t) {
		all = append(all, snippetsOf(t, page)...)
	}
	require.GreaterOrEqual(t, len(all), 4, "blocks of code: the pages would not be checked")
	dir := t.TempDir()
	writeModule(t, dir)
	for i, s := range all {
		pkg := filepath.Join(dir, fmt.Sprintf("block%d", i))
		require.NoError(t, os.Mkdir(pkg, 0o755))
		text := fmt.Sprintf("// From %s.\n%s", s.from, s.program())
		require.NoError(t, os.WriteFile(filepath.Join(pkg, "code.go"), []byte(text), 0o644))
		out, err := goCommand(goTool, dir, "build", "-o", os.DevNull, "./"+filepath.Base(pkg))
		assert.NoError(t, err, "%s does not build:\n%s\n%s", s.from, out, text)
	}
}

// writeModule makes dir a module that uses this one, with the same versions of its dependencies.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	root, err := os.Getwd()
	require.NoError(t, err)
	const self = "github.com/ringcache/ringcache"
	mod := strings.Replace(readText(t, "go.mod"), "module "+self, "module example.com/page", 1)
	mod += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %q\n", self, self, root)
	for name, text := range map[string]string{"go.mod": mod, "go.sum": readText(t, "go.sum")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

func goCommand(tool, dir string, args ...string) ([]byte, error) {
	cmd := exec.Command(tool, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	return cmd.CombinedOutput()
}

// Each adapter is a separate module, named in the README and the changelog.
func TestReadme_ListsEachAdapter(t *testing.T) {
	readme, changes := readText(t, "README.md"), readText(t, "CHANGELOG.md")
	dirs, err := filepath.Glob("adapters/ring*")
	require.NoError(t, err)
	require.Greater(t, len(dirs), 10)
	for _, dir := range dirs {
		name := filepath.Base(dir)
		assert.FileExists(t, filepath.Join(dir, "go.mod"))
		assert.FileExists(t, filepath.Join(dir, "README.md"))
		assert.Contains(t, readme, "](adapters/"+name+")")
		assert.Contains(t, changes, "`"+name+"`")
	}
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The README's two commands come first, and CI runs them verbatim.
func TestReadme_CommandsAreThoseOfCI(t *testing.T) {
	var commands []string
	for _, m := range shellBlock.FindAllStringSubmatch(readText(t, "README.md"), -1) {
		for line := range strings.Lines(m[1]) {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "go get ") {
				commands = append(commands, line)
			}
		}
	}
	want := []string{"go run ./examples/selfcheck", "go test ./..."}
	require.GreaterOrEqual(t, len(commands), 2)
	require.Equal(t, want, commands[:2])
	ci := readText(t, ".ci/run")
	for _, c := range want {
		assert.Regexp(t, `(?m)\bsay `+regexp.QuoteMeta(c)+`(; }|)$`, ci)
	}
}

var (
	codeSpan     = regexp.MustCompile("`[^`]+`")
	exportedName = regexp.MustCompile(`(^|[^.\w])([A-Z]\w*)`) // not that of another package
)

// The migration page names existing identifiers: in the tables whose second column is about this
// package, every exported name of that column is one of the package's.
func TestReadme_MovingNamesWhatThereIs(t *testing.T) {
	exported, named, ours := exportedNames(t), 0, false
	for line := range strings.Lines(readText(t, "docs/moving.md")) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			ours = false
			continue
		}
		if strings.TrimSpace(cells[2]) == "ringcache" {
			ours = true
		}
		if !ours {
			continue
		}
		for _, span := range codeSpan.FindAllString(cells[2], -1) {
			span = strings.ReplaceAll(span, "Options.", "")
			for _, m := range exportedName.FindAllStringSubmatch(span, -1) {
				assert.True(t, exported[m[2]], "%s in %s", m[2], line)
				named++
			}
		}
	}
	require.GreaterOrEqual(t, named, 80, "names: the tables would not be checked")
}

// exportedNames returns the exported identifiers of the root package, methods and fields included.
func exportedNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.Field:
				for _, id := range n.Names {
					names[id.Name] = true
				}
			case *ast.ValueSpec:
				for _, id := range n.Names {
					names[id.Name] = true
				}
			}
			return true
		})
	}
	return names
}

var link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

func TestReadme_LinksLead(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		text := goBlock.ReplaceAllString(readText(t, page), "") // f[T](x) is no link
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			assert.NoError(t, err, page)
		}
	}
	require.GreaterOrEqual(t, links, 5, "links: the pages would not be checked")
}

func TestReadme_IsShort(t *testing.T) {
	lines := strings.Count(readText(t, "README.md"), "\n")
	require.LessOrEqual(t, lines, 150)
}
