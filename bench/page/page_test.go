package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFigures(t *testing.T) {
	page := "It takes 0.81 of the time (1.5 here), or 3 times as long.\n" +
		"Go 1.24 and fastcache\n1.13.0, `x 0.5`, [a](b-0.7.md), 2026-11-25, 16 bytes.\n" +
		"<!-- figures: run -->\n0.99\n<!-- /figures -->\n"
	require.Equal(t, []string{"0.81", "1.5", "3 times"}, Figures(page))
	require.Equal(t, []string{"0.81"}, Unfounded(page, "| 1.5 | 3 times | 10.81 | 0.812 |"))
}

const text = "a\n<!-- figures: x -->\nold\n<!-- /figures -->\nb\n" +
	"<!-- figures: y -->\n<!-- /figures -->\n"

func TestFill(t *testing.T) {
	made, err := Fill(text, map[string]string{"x": "new\n", "y": "2\n"})
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- figures: x -->\nnew\n<!-- /figures -->\nb\n<!-- figures: y -->\n2\n"+
		"<!-- /figures -->\n", made)
	again, err := Fill(made, map[string]string{"x": "new\n", "y": "2\n"})
	require.NoError(t, err)
	require.Equal(t, made, again)
	_, err = Fill(text, map[string]string{"x": ""})
	require.ErrorContains(t, err, `"y"`)
	require.Equal(t, []string{"x", "y"}, Blocks(text))
}

func TestFill_WrapsLongLines(t *testing.T) {
	word := strings.Repeat("w", 48)
	row := "| " + strings.Repeat(word+" ", 5) + "|\n"
	url := "![" + strings.Repeat("u", 2*columns) + "](x)\n"
	made, err := Fill(text, map[string]string{
		"x": strings.Repeat(word+" ", 4) + "end\n- " + strings.Repeat(word+" ", 4) + "end\n",
		"y": row + url,
	})
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- figures: x -->\n"+word+" "+word+"\n"+word+" "+word+"\nend\n"+
		"- "+word+" "+word+"\n  "+word+" "+word+"\n  end\n"+
		"<!-- /figures -->\nb\n<!-- figures: y -->\n"+row+url+"<!-- /figures -->\n", made)
}

func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.md")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	require.NoError(t, Update(dir, []string{"a.md"}, map[string]string{"x": "1\n", "y": "2\n"}))
	made, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(made), "y -->\n2\n<!--")
	require.ErrorContains(t, Update(dir, []string{"a.md"}, nil), "write a.md")
	require.ErrorIs(t, Update(dir, []string{"b.md"}, nil), os.ErrNotExist)
}
