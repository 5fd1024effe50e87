package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const changes = `# Changelog

About it.

## [Unreleased]

All of this,
in two lines.

### Cache

- A call, see
  [its page](docs/call.md), [a part](docs/call.md#part) and
  [the others](https://example.com/calls).
- Another.
`

func TestChangelog_NotesAreTheSectionOfTheRelease(t *testing.T) {
	text, err := released(changes, "v0.1.0", "2030-01-02")
	require.NoError(t, err)
	assert.Contains(t, text, "## [Unreleased]\n\n## [0.1.0] - 2030-01-02\n\nAll of this,")
	again, err := released(text, "v0.1.0", "2031-01-01")
	require.NoError(t, err)
	assert.Equal(t, text, again)

	want := "All of this, in two lines.\n\n### Cache\n\n" +
		"- A call, see [its page](https://example.com/m/blob/v0.1.0/docs/call.md), " +
		"[a part](https://example.com/m/blob/v0.1.0/docs/call.md#part) and " +
		"[the others](https://example.com/calls).\n- Another.\n"
	got, err := notes(text, "example.com/m", "v0.1.0")
	require.NoError(t, err)
	assert.Equal(t, want, got)

	text, err = released(text+"\n## [0.0.9] - 2029-01-01\n\n- Older.\n", "v0.1.0", "")
	require.NoError(t, err)
	got, err = notes(text, "example.com/m", "v0.1.0")
	require.NoError(t, err)
	assert.Equal(t, want, got, "it ends before the next section")
}

func TestChangelog_RefusesAReleaseWithoutNotes(t *testing.T) {
	_, err := section(changes, "v0.1.0")
	require.ErrorContains(t, err, "no section of v0.1.0")
	_, err = released("# Changelog\n", "v0.1.0", "")
	require.ErrorContains(t, err, "neither a section of v0.1.0 nor an unreleased one")

	text, err := released(changes, "v0.1.0", "2030-01-02")
	require.NoError(t, err)
	_, err = released(text, "v0.2.0", "2030-02-03")
	require.ErrorContains(t, err, "the section of v0.2.0 is empty")
	_, err = section(text, "v0.1")
	require.ErrorContains(t, err, "no section of v0.1")
}
