package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	rootMod = "module example.com/x/cache\n\ngo 1.24.0\n"

	adapterMod = `module example.com/x/cache/adapters/a

go 1.24.0

require example.com/x/cache v0.1.0

replace example.com/x/cache => ../..
`
	exampleMod = `module example.com/x/cache/examples/e

go 1.24.0

require (
	example.com/x/cache v0.1.0
	example.com/x/cache/adapters/a v0.1.0 // a comment stays
	example.com/x/cachet v0.7.0
)

replace (
	example.com/x/cache => ../..
	example.com/x/cache/adapters/a => ../../adapters/a
)
`
)

// write makes a repository of three modules, some with another go.mod file, and reads
// its modules.
func write(t *testing.T, changed map[string]string) (string, modules) {
	t.Helper()
	root := t.TempDir()
	texts := map[string]string{
		"go.mod": rootMod, "adapters/a/go.mod": adapterMod, "examples/e/go.mod": exampleMod,
	}
	maps.Copy(texts, changed)
	for name, text := range texts {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	mods, err := readModules(root, append(slices.Sorted(maps.Keys(texts)), "deleted/go.mod", "a.go"))
	require.NoError(t, err)
	return root, mods
}

func TestModules_CheckReturnsTheOneVersion(t *testing.T) {
	_, mods := write(t, nil)
	version, err := mods.check()
	require.NoError(t, err)
	assert.Equal(t, "v0.1.0", version)
	assert.Equal(t, []string{"v0.1.0", "adapters/a/v0.1.0"}, mods.tags(version))

	const inner = "adapters/internal/t"
	_, mods = write(t, map[string]string{inner + "/go.mod": "module example.com/x/cache/" + inner + `

require example.com/x/cache v0.1.0

replace example.com/x/cache => ../../..
`})
	version, err = mods.check()
	require.NoError(t, err)
	assert.Equal(t, []string{"v0.1.0", "adapters/a/v0.1.0"}, mods.tags(version), "it is internal")
}

func TestModules_CheckRefuses(t *testing.T) {
	const adapter, example = "adapters/a/go.mod", "examples/e/go.mod"
	const head = "module example.com/x/cache/adapters/a\n\ngo 1.24.0\n\n"
	tests := map[string]struct{ file, text, want string }{
		"two versions": {adapter, head +
			"require example.com/x/cache v0.0.0\nreplace example.com/x/cache => ../..\n",
			"v0.0.0 is required by adapters/a/go.mod\n  v0.1.0 is required by examples/e/go.mod"},
		"no replacement": {adapter, head + "require example.com/x/cache v0.1.0\n",
			"adapters/a/go.mod: requires example.com/x/cache without replacing it by ./"},
		"the replacement is another folder": {adapter, head +
			"require example.com/x/cache v0.1.0\nreplace example.com/x/cache => ..\n",
			"adapters/a/go.mod: requires example.com/x/cache without replacing it by ./"},
		"a module that is not released": {adapter, head +
			"require example.com/x/cache/examples/e v0.1.0\n" +
			"replace example.com/x/cache/examples/e => ../../examples/e\n",
			"adapters/a/go.mod: requires example.com/x/cache/examples/e, which is not tagged"},
		"a module that is not there": {adapter, head + "require example.com/x/cache/b v0.1.0\n",
			"requires example.com/x/cache/b, which is not a module of this repository"},
		"a path that does not follow from the folder": {example,
			"module example.com/x/cache/e\n\ngo 1.24.0\n",
			"examples/e/go.mod: module example.com/x/cache/e must be example.com/x/cache/examples/e"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, mods := write(t, map[string]string{test.file: test.text})
			_, err := mods.check()
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestModules_RefusesVersionsThatCannotBeTagged(t *testing.T) {
	for _, version := range []string{"v0.0.0", "v0.0.0-00010101000000-000000000000", "v0.2", "0.2.0",
		"v2.0.0", "v0.2.0+build", ""} {
		root, mods := write(t, nil)
		assert.ErrorContains(t, mods.setVersion(root, version), version)
		again, err := readModules(root, []string{"go.mod", "adapters/a/go.mod", "examples/e/go.mod"})
		require.NoError(t, err)
		assert.Equal(t, mods, again, "a go.mod file was changed")
	}
	everywhere := map[string]string{
		"adapters/a/go.mod": strings.ReplaceAll(adapterMod, "v0.1.0", "v0.0.0"),
		"examples/e/go.mod": strings.ReplaceAll(exampleMod, "v0.1.0", "v0.0.0"),
	}
	_, mods := write(t, everywhere)
	_, err := mods.check()
	require.ErrorContains(t, err, `version "v0.0.0" cannot be released`)
}

func TestModules_SetVersionChangesOurRequirementsOnly(t *testing.T) {
	root, mods := write(t, nil)
	require.NoError(t, mods.setVersion(root, "v0.2.0"))
	text, err := os.ReadFile(filepath.Join(root, "examples/e/go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `require (
	example.com/x/cache v0.2.0
	example.com/x/cache/adapters/a v0.2.0 // a comment stays
	example.com/x/cachet v0.7.0
)`)
	text, err = os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	assert.Equal(t, rootMod, string(text))
	version, err := mods.check()
	require.NoError(t, err)
	assert.Equal(t, "v0.2.0", version)
}
