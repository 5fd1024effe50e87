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
)

// What the pages show has to work: this file builds their code, holds it
// against the examples, and follows their links.

// snippet is a piece of Go code that a page shows.
type snippet struct {
	from string
	code string
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// pages returns the names of all Markdown files that belong to the root.
func pages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(names, more...)
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
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var p comment.Parser
	var all []snippet
	for _, block := range p.Parse(file.Doc.Text()).Content {
		if code, ok := block.(*comment.Code); ok {
			all = append(all, snippet{fmt.Sprintf("doc.go, block %d", len(all)+1), code.Text})
		}
	}
	return all
}

// exampleBody returns the statements of an example as a page would show them.
func exampleBody(t *testing.T, name string) string {
	t.Helper()
	const file = "example_test.go"
	text := readText(t, file)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			body := text[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
			body, _, _ = strings.Cut(body, "\t// Output:")
			return strings.TrimSpace(strings.ReplaceAll(body, "\n\t", "\n")) + "\n"
		}
	}
	t.Fatalf("%s has no %s", file, name)
	return ""
}

func TestReadme_FirstSnippetIsTheExample(t *testing.T) {
	want := exampleBody(t, "Example")
	for _, all := range [][]snippet{snippetsOf(t, "README.md"), packageSnippets(t)} {
		if len(all) == 0 {
			t.Fatal("a page shows no code")
		}
		if all[0].code != want {
			t.Errorf("%s is\n%s\nExample is\n%s", all[0].from, all[0].code, want)
		}
	}
}

// fragmentImports are the packages that a fragment may name.
var fragmentImports = []string{"errors", "expvar", "fmt", "log", "github.com/ringcache/ringcache"}

// program makes a file of a snippet: whole files as they are, fragments in a
// function with the variables that pages take for granted.
func (s snippet) program() string {
	if strings.HasPrefix(s.code, "package ") {
		return s.code
	}
	var b strings.Builder
	b.WriteString("package fragment\n\n")
	for _, path := range fragmentImports {
		if strings.Contains(s.code, filepath.Base(path)+".") || strings.HasSuffix(path, "/ringcache") {
			fmt.Fprintf(&b, "import %q\n", path)
		}
	}
	fmt.Fprintf(&b, "\nfunc _(cache *ringcache.Cache, key, value []byte, keys [][]byte) {\n{\n%s}\n}\n", s.code)
	return b.String()
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
	dir := t.TempDir()
	writeModule(t, dir)
	for i, s := range all {
		pkg := filepath.Join(dir, fmt.Sprintf("block%d", i))
		if err := os.Mkdir(pkg, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("// From %s.\n%s", s.from, s.program())
		if err := os.WriteFile(filepath.Join(pkg, "code.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := goCommand(goTool, dir, "build", "-o", os.DevNull, "./"+filepath.Base(pkg))
		if err != nil {
			t.Errorf("%s does not build: %v\n%s\n%s", s.from, err, out, text)
		}
	}
	if len(all) < 4 {
		t.Errorf("only %d blocks of code found: the pages would not be checked", len(all))
	}
}

// writeModule makes dir a module that uses this one, with the same versions of
// what it needs.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const self = "github.com/ringcache/ringcache"
	mod := strings.Replace(readText(t, "go.mod"), "module "+self, "module example.com/page", 1)
	mod += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %q\n", self, self, root)
	for name, text := range map[string]string{"go.mod": mod, "go.sum": readText(t, "go.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func goCommand(tool, dir string, args ...string) ([]byte, error) {
	cmd := exec.Command(tool, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	return cmd.CombinedOutput()
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The README's two commands come first, and CI runs them as they stand there.
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
	want := []string{"go run ./examples/quickstart", "go test ./..."}
	if len(commands) < 2 || !slices.Equal(commands[:2], want) {
		t.Errorf("the README's first commands are %q, want %q", commands, want)
	}
	ci := readText(t, ".ci/run")
	for _, c := range want {
		if !regexp.MustCompile(`(?m)\bsay ` + regexp.QuoteMeta(c) + `(; }|)$`).MatchString(ci) {
			t.Errorf(".ci/run does not run %q", c)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

func TestReadme_LinksLead(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(readText(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if links < 5 {
		t.Errorf("only %d links found: the pages would not be checked", links)
	}
}

func TestReadme_IsShort(t *testing.T) {
	if n := strings.Count(readText(t, "README.md"), "\n"); n > 200 {
		t.Errorf("README.md has %d lines, at most 200", n)
	}
}
