// Command release prepares a release of every module of this repository.
//
//	go run -C tools ./release              check the go.mod files and rehearse the release
//	go run -C tools ./release -set v0.2.0  write a version into every go.mod file
//	go run -C tools ./release -tags        print the tags of the release
//
// All released modules have the same version and are tagged on the same commit. The version
// is the one with which they require each other: see check. CI runs the rehearsal.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	set := flag.String("set", "", "write this `version` into every go.mod file")
	tags := flag.Bool("tags", false, "print the tags of the release, one per line")
	flag.Parse()
	if err := run(*set, *tags); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(set string, tags bool) error {
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
		return mods.setVersion(root, set)
	}
	version, err := mods.check()
	if err != nil {
		return err
	}
	if tags {
		fmt.Println(strings.Join(mods.tags(version), "\n"))
		return nil
	}
	return rehearse(root, files, mods, version)
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
