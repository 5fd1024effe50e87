package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// unreleased names the folders whose modules are not tagged: their programs and tests
// are run in a clone.
var unreleased = []string{"bench", "examples", "lincheck", "tools"}

// mod is a module of the repository.
type mod struct {
	dir  string // slash-separated and relative to the root of the repository, "." for the root
	file *modfile.File
}

func (m mod) path() string { return m.file.Module.Mod.Path }

// gomod returns the name of the module's go.mod file.
func (m mod) gomod() string { return path.Join(m.dir, "go.mod") }

// released reports whether the module is tagged. Nobody else could import one below internal.
func (m mod) released() bool {
	top, _, _ := strings.Cut(m.dir, "/")
	return !slices.Contains(unreleased, top) && !strings.Contains(m.dir, "/internal/")
}

// tag returns the tag that publishes the module at version.
func (m mod) tag(version string) string { return path.Join(m.dir, version) }

// modules holds every module of the repository, the root first.
type modules []mod

func readModules(root string, files []string) (modules, error) {
	var mods modules
	for _, name := range files {
		if path.Base(name) != "go.mod" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not committed yet
		}
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, data, nil)
		if err != nil {
			return nil, err
		}
		mods = append(mods, mod{path.Dir(name), file})
	}
	slices.SortFunc(mods, func(a, b mod) int { return cmp.Compare(a.dir, b.dir) })
	if len(mods) == 0 || mods[0].dir != "." {
		return nil, errors.New("there is no go.mod file at the root of the repository")
	}
	return mods, nil
}

// tags returns the tags of the release.
func (mods modules) tags(version string) []string {
	var tags []string
	for _, m := range mods {
		if m.released() {
			tags = append(tags, m.tag(version))
		}
	}
	return tags
}

// ours returns the requirements of m that are modules of this repository.
func (mods modules) ours(m mod) []module.Version {
	var all []module.Version
	for _, r := range m.file.Require {
		if r.Mod.Path == mods[0].path() || strings.HasPrefix(r.Mod.Path, mods[0].path()+"/") {
			all = append(all, r.Mod)
		}
	}
	return all
}

// check returns the version of the release. It is an error if the go.mod files do not
// agree on one version, or if a module would be tagged that cannot be fetched.
func (mods modules) check() (string, error) {
	var errs []error
	versions := map[string][]string{} // the go.mod files that require a module of ours at it
	for _, m := range mods {
		if want := path.Join(mods[0].path(), m.dir); m.path() != want {
			errs = append(errs, fmt.Errorf("%s: module %s must be %s", m.gomod(), m.path(), want))
		}
		for _, r := range mods.ours(m) {
			if files := versions[r.Version]; !slices.Contains(files, m.gomod()) {
				versions[r.Version] = append(files, m.gomod())
			}
			if err := mods.checkRequirement(m, r); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m.gomod(), err))
			}
		}
	}
	all := slices.Sorted(maps.Keys(versions))
	if len(all) != 1 {
		errs = append(errs, disagreement(mods[0].path(), versions))
	} else if err := checkVersion(mods[0].path(), all[0]); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", strings.Join(versions[all[0]], ", "), err))
	}
	if len(errs) > 0 {
		return "", errors.Join(errs...)
	}
	return all[0], nil
}

// checkRequirement reports whether users can fetch what m requires, and whether a clone
// uses its own copy instead.
func (mods modules) checkRequirement(m mod, required module.Version) error {
	i := slices.IndexFunc(mods, func(o mod) bool { return o.path() == required.Path })
	if i < 0 {
		return fmt.Errorf("requires %s, which is not a module of this repository", required.Path)
	}
	if m.released() && !mods[i].released() {
		return fmt.Errorf("requires %s, which is not tagged", required.Path)
	}
	for _, r := range m.file.Replace {
		if r.Old.Path == required.Path && r.Old.Version == "" && r.New.Version == "" &&
			path.Join(m.dir, r.New.Path) == mods[i].dir {
			return nil
		}
	}
	return fmt.Errorf("requires %s without replacing it by %s/, so a clone would be built with "+
		"a published version", required.Path, mods[i].dir)
}

// disagreement returns the error that lists which go.mod files require which version.
func disagreement(root string, versions map[string][]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "the go.mod files must all require one version of %s:", root)
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(&b, "\n  %s is required by %s", v, strings.Join(versions[v], ", "))
	}
	b.WriteString("\nrun: go run -C tools ./release -set VERSION")
	return errors.New(b.String())
}

// checkVersion reports whether version can be tagged.
func checkVersion(root, version string) error {
	if semver.Canonical(version) != version || version == "v0.0.0" || module.IsPseudoVersion(version) {
		return fmt.Errorf("version %q cannot be released: want a version such as v0.2.0", version)
	}
	return module.Check(root, version)
}

// setVersion makes every requirement between our modules one of version, and writes the
// go.mod files.
func (mods modules) setVersion(root, version string) error {
	if err := checkVersion(mods[0].path(), version); err != nil {
		return err
	}
	for _, m := range mods {
		for _, r := range mods.ours(m) {
			if err := m.file.AddRequire(r.Path, version); err != nil {
				return err
			}
		}
		text, err := m.file.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, m.gomod()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
