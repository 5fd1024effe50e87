// Package page puts figures into Markdown pages: between two comments stands what data gives,
// and the prose around them has no figures that are not there.
package page

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// block is a part of a page that is made from data.
var block = regexp.MustCompile(`(?s)(<!-- figures: (\S+) -->\n).*?(<!-- /figures -->)`)

// columns is the length of the longest line, tables aside.
const columns = 100

// Fill returns the text with each of its blocks replaced by the one of that name, whose sentences
// are wrapped.
func Fill(text string, blocks map[string]string) (string, error) {
	var unknown error
	filled := block.ReplaceAllStringFunc(text, func(old string) string {
		m := block.FindStringSubmatch(old)
		made, ok := blocks[m[2]]
		if !ok {
			unknown = errors.Join(unknown, fmt.Errorf("there are no figures %q", m[2]))
		}
		var wrapped strings.Builder
		for line := range strings.Lines(made) {
			wrapped.WriteString(wrap(line))
		}
		return m[1] + wrapped.String() + m[3]
	})
	return filled, unknown
}

// wrap breaks a line of prose, or of a list, at spaces.
func wrap(line string) string {
	if strings.HasPrefix(line, "|") || len(line) <= columns+len("\n") {
		return line
	}
	indent := ""
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "  ") {
		indent = "  "
	}
	at := strings.LastIndexByte(line[:columns+1], ' ')
	if at < len("- ") {
		return line
	}
	return line[:at] + "\n" + wrap(indent+line[at+1:])
}

// Update fills the blocks of the files below root.
func Update(root string, files []string, blocks map[string]string) error {
	for _, name := range files {
		file := filepath.Join(root, name)
		old, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("page: %w", err)
		}
		text, err := Fill(string(old), blocks)
		if err != nil {
			return fmt.Errorf("page: write %s: %w", name, err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return fmt.Errorf("page: %w", err)
		}
	}
	return nil
}

// Blocks returns the names of the blocks of a page.
func Blocks(text string) (names []string) {
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		names = append(names, m[2])
	}
	return names
}

var (
	// figure is what looks like a ratio or a measured time: 0.81, 16.4; not a version or a date.
	figure = regexp.MustCompile(`(?:^|[^\w./-])(\d+\.\d+|\d+ times)\b`)
	// notProse is code, and addresses of links.
	notProse = regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\]\\([^)]*\\)")
	// versions are of programs; until 1.0 is about those of the project.
	versions = regexp.MustCompile(`(?:Go|Linux|fastcache|BigCache|freecache|ristretto|otter|theine|` +
		`go-cache|golang-lru|Until)\s\d+\.\d+(\.\d+)?`)
)

// Figures returns the figures of a page's prose.
func Figures(text string) (found []string) {
	text = block.ReplaceAllString(text, "")
	text = versions.ReplaceAllString(notProse.ReplaceAllString(text, "]"), "")
	for _, m := range figure.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// Unfounded returns the figures of a page's prose that the tables do not have.
func Unfounded(text, tables string) []string {
	return slices.DeleteFunc(Figures(text), func(f string) bool {
		known := regexp.MustCompile(`(?:^|[^\d.])` + regexp.QuoteMeta(f) + `(?:[^\d.]|$)`)
		return known.MatchString(tables)
	})
}
