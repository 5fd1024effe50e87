package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// rehearsal is a release that only this process can see: a repository with all of the
// tags, and an environment in which the go command fetches from it.
type rehearsal struct {
	root    string // of the working tree
	tmp     string
	version string
	env     []string
}

// rehearse publishes the working tree to a temporary repository, and uses each released
// module as described on its page.
func rehearse(root string, files []string, mods modules, version string) error {
	changes, err := readChangelog(root)
	if err != nil {
		return err
	}
	if _, err := released(changes, version, "today"); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	r := rehearsal{root: root, tmp: tmp, version: version}
	repo, err := r.publish(files, mods.tags(version))
	if err != nil {
		return err
	}
	if r.env, err = userEnv(tmp, repo, mods[0].path()); err != nil {
		return err
	}
	for _, m := range mods {
		if !m.released() {
			continue
		}
		from := time.Now()
		fetch := r.fetch
		if m.dir == fastcacheDir {
			fetch = r.replaceFastcache
		}
		if err := fetch(m); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		fmt.Printf("%s %s: %.1f s\n", m.path(), version, time.Since(from).Seconds())
	}
	return nil
}

// publish commits files to a new repository, tags the commit, and returns the
// repository's directory.
func (r rehearsal) publish(files, tags []string) (string, error) {
	repo := filepath.Join(r.tmp, "repo.git")
	git := func(stdin string, args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"--git-dir=" + repo}, args...)...)
		cmd.Dir = r.root
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_WORK_TREE="+r.root,
			"GIT_INDEX_FILE="+filepath.Join(repo, "index"), "GIT_CONFIG_GLOBAL="+os.DevNull,
			"GIT_AUTHOR_NAME=release", "GIT_AUTHOR_EMAIL=release@example.com",
			"GIT_COMMITTER_NAME=release", "GIT_COMMITTER_EMAIL=release@example.com")
		return output(cmd)
	}
	bare := exec.Command("git", "init", "--quiet", "--bare", "--template=", repo)
	if _, err := output(bare); err != nil {
		return "", err
	}
	// --remove passes over files that were deleted and not committed.
	names := strings.Join(files, "\x00") + "\x00"
	if _, err := git(names, "update-index", "--add", "--remove", "-z", "--stdin"); err != nil {
		return "", err
	}
	if _, err := git("", "commit", "--quiet", "--message=release"); err != nil {
		return "", err
	}
	_, err := git(creation(tags), "update-ref", "--stdin")
	return repo, err
}

// userEnv returns the environment of a user who has none of our modules. They come from
// repo, and all others from this machine's module cache where it has them. -trimpath
// makes the build cache independent of the temporary directory.
func userEnv(tmp, repo, module string) ([]string, error) {
	out, err := output(exec.Command("go", "env", "GOMODCACHE", "GOPROXY"))
	if err != nil {
		return nil, err
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(out), "\n")
	private := path.Dir(module) + "/*"
	return append(os.Environ(),
		"GOMODCACHE="+filepath.Join(tmp, "mod"),
		"GOPROXY=file://"+filepath.ToSlash(cache)+"/cache/download,"+proxy,
		"GOPRIVATE="+private, "GONOPROXY="+private, "GONOSUMDB="+private,
		"GOSUMDB=off", // the go.sum files of the modules hold the checksums
		"GOFLAGS=-trimpath -modcacherw", "GOWORK=off",
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://"+filepath.ToSlash(repo)+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+module,
	), nil
}

// user is the module of a user.
type user struct {
	dir string
	env []string
}

func (r rehearsal) newUser(m mod) (user, error) {
	u := user{filepath.Join(r.tmp, "user", m.dir), r.env}
	if err := os.MkdirAll(u.dir, 0o755); err != nil {
		return u, err
	}
	_, err := u.run("go", "mod", "init", "example.com/user")
	return u, err
}

func (u user) run(args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = u.dir
	cmd.Env = u.env
	return output(cmd)
}

func (u user) write(program string) error {
	return os.WriteFile(filepath.Join(u.dir, "main.go"), []byte(program), 0o644)
}

// continued is the end of a line of a command that goes on in the next line.
var continued = regexp.MustCompile(`\\\n[/\s]*`)

// commands returns the go get and go mod commands that a page shows.
func (r rehearsal) commands(page string) ([][]string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, page))
	if err != nil {
		return nil, err
	}
	var all [][]string
	for line := range strings.Lines(continued.ReplaceAllString(string(text), " ")) {
		line = strings.TrimLeft(line, "/ \t") // also in a comment of a Go file
		line, _, _ = strings.Cut(line, " #")
		if strings.HasPrefix(line, "go get ") || strings.HasPrefix(line, "go mod ") {
			all = append(all, strings.Fields(line))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s shows no command that fetches the module", page)
	}
	return all, nil
}

// fetch runs the commands of the module's README in an empty module, and then a program
// that imports every package of it. The commands must be sufficient: tidy runs last.
func (r rehearsal) fetch(m mod) error {
	commands, err := r.commands(path.Join(m.dir, "README.md"))
	if err != nil {
		return err
	}
	u, err := r.newUser(m)
	if err != nil {
		return err
	}
	for _, c := range commands {
		if _, err := u.run(c...); err != nil {
			return err
		}
	}
	if err := u.expect(m.path()+" "+r.version, "{{.}}", m.path()); err != nil {
		return err
	}
	names, err := u.run("go", "list", "-find", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`,
		m.path()+"/...")
	if err != nil {
		return err
	}
	imports := ""
	for _, name := range strings.Fields(names) {
		if !strings.Contains(name+"/", "/internal/") {
			imports += fmt.Sprintf("import _ %q\n", name)
		}
	}
	if imports == "" {
		return errors.New("the module has no package to import")
	}
	if err := u.write("package main\n\n" + imports + "\nfunc main() {}\n"); err != nil {
		return err
	}
	if _, err := u.run("go", "run", "."); err != nil {
		return err
	}
	if m.dir == "." {
		if err := r.runFirstProgram(u); err != nil {
			return err
		}
	}
	_, err = u.run("go", "mod", "tidy") // also finds what the module's tests need
	return err
}

// firstProgram is the one that the page about the installation shows.
const firstProgram = "examples/quickstart/main.go"

// runFirstProgram runs it in the user's module.
func (r rehearsal) runFirstProgram(u user) error {
	text, err := os.ReadFile(filepath.Join(r.root, firstProgram))
	if err != nil {
		return err
	}
	if err := u.write(string(text)); err != nil {
		return err
	}
	_, err = u.run("go", "run", ".")
	return err
}

// expect returns an error if the go command describes a module of the build otherwise.
func (u user) expect(want, format, module string) error {
	got, err := u.run("go", "list", "-m", "-f", format, module)
	if err == nil && strings.TrimSpace(got) != want {
		err = fmt.Errorf("the build has %q, not %q", strings.TrimSpace(got), want)
	}
	return err
}

// fastcacheDir is the directory of the module that replaces fastcache.
const fastcacheDir = "compat/fastcache"

const fastcache = "github.com/VictoriaMetrics/fastcache"

// fastcachePages show the commands that replace fastcache with compat/fastcache.
var fastcachePages = []string{
	"docs/moving.md", fastcacheDir + "/README.md", fastcacheDir + "/fastcache.go",
}

const fastcacheProgram = `package main

import "github.com/VictoriaMetrics/fastcache"

func main() {
	c := fastcache.New(1)
	c.Set([]byte("planet"), []byte("Saturn"))
	if string(c.Get(nil, []byte("planet"))) != "Saturn" {
		panic("the entry is missing")
	}
}
`

// replaceFastcache creates a program that uses fastcache, and runs the commands of the
// pages that switch it to compat/fastcache.
func (r rehearsal) replaceFastcache(m mod) error {
	var commands [][]string
	for i, page := range fastcachePages {
		shown, err := r.commands(page)
		if err != nil {
			return err
		}
		if i == 0 {
			commands = shown
		} else if !slices.EqualFunc(commands, shown, slices.Equal) {
			return fmt.Errorf("%s and %s show different commands", fastcachePages[0], page)
		}
	}
	u, err := r.newUser(m)
	if err != nil {
		return err
	}
	if err := u.write(fastcacheProgram); err != nil {
		return err
	}
	isTheirs := func(q *modfile.Require) bool { return q.Mod.Path == fastcache }
	i := slices.IndexFunc(m.file.Require, isTheirs)
	if i < 0 {
		return errors.New("go.mod does not require " + fastcache)
	}
	theirs := m.file.Require[i].Mod.String()
	if _, err := u.run("go", "mod", "edit", "-require", theirs); err != nil {
		return err
	}
	for _, c := range commands {
		if _, err := u.run(c...); err != nil {
			return err
		}
	}
	if err := u.expect(m.path()+" "+r.version, "{{.Replace}}", fastcache); err != nil {
		return err
	}
	_, err = u.run("go", "run", ".")
	return err
}
