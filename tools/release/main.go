// Command release prepares a release of every module of this repository.
//
//	go run -C tools ./release              check the go.mod files and rehearse the release
//	go run -C tools ./release -set v0.2.0  write a version into every go.mod file and CHANGELOG.md
//	go run -C tools ./release -tag         tag the commit for every module
//	go run -C tools ./release -notes       print the section of CHANGELOG.md as GitHub needs it
//
// All released modules have the same version and are tagged on the same commit. The version
// is the one with which they require each other: see check. CI runs the rehearsal.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	set := flag.String("set", "", "write this `version` into every go.mod file and CHANGELOG.md")
	tag := flag.Bool("tag", false, "tag the commit for every module, and print the tags")
	notes := flag.Bool("notes", false, "print the notes of the release")
	flag.Parse()
	if err := run(*set, *tag, *notes); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(set string, tag, printNotes bool) error {
	top, err := output(exec.Command("git", "rev-parse", "--show-toplevel"))
	if err != nil {
		return err
	}
	root := strings.TrimSpace(top)
	files, err := listFiles(root)
	if err != nil {
		return err
	}
	mods, err := readModules(root, files)
	if err != nil {
		return err
	}
	if set != "" {
		return setVersion(root, mods, set)
	}
	version, err := mods.check()
	if err != nil {
		return err
	}
	if !tag && !printNotes {
		return rehearse(root, files, mods, version)
	}
	changes, err := readChangelog(root)
	if err != nil {
		return err
	}
	text, err := notes(changes, mods[0].path(), version)
	if err != nil {
		return err
	}
	if printNotes {
		fmt.Print(text)
		return nil
	}
	return tagCommit(root, mods.tags(version))
}

// setVersion writes version into the go.mod files, and makes the unreleased section of the
// changelog that of version.
func setVersion(root string, mods modules, version string) error {
	text, err := readChangelog(root)
	if err != nil {
		return err
	}
	if text, err = released(text, version, time.Now().UTC().Format(time.DateOnly)); err != nil {
		return err
	}
	if err := mods.setVersion(root, version); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, changelog), []byte(text), 0o644)
}

// tagCommit creates the tags of the release on the current commit, all or none, and prints them.
func tagCommit(root string, tags []string) error {
	git := func(stdin string, args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = root, strings.NewReader(stdin)
		return output(cmd)
	}
	changed, err := git("", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return errors.New("the working tree is not the commit that would be tagged:\n" + changed)
	}
	if _, err := git(creation(tags), "update-ref", "--stdin"); err != nil {
		return err
	}
	fmt.Println(strings.Join(tags, "\n"))
	return nil
}

// creation returns the input of "git update-ref --stdin" that creates tags on the current commit.
// It fails as a whole if one of them exists.
func creation(tags []string) string {
	var b strings.Builder
	for _, tag := range tags {
		fmt.Fprintf(&b, "create refs/tags/%s HEAD\n", tag)
	}
	return b.String()
}

// listFiles returns the files of the working tree that belong to the repository,
// committed or not. Deleted files may still be among them.
func listFiles(root string) ([]string, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := output(list)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), nil
}

// output runs a command and returns its standard output. The error of a command that
// fails contains everything the command printed.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err,
			strings.TrimSpace(stdout.String()+stderr.String()))
	}
	return stdout.String(), nil
}
