package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const changelog = "CHANGELOG.md"

// unreleasedTitle begins the section of CHANGELOG.md that the next release gets.
const unreleasedTitle = "## [Unreleased]\n"

// released returns a changelog whose unreleased section has become that of version. A text that
// has a section of version is left as it is.
func released(text, version, date string) (string, error) {
	if _, err := section(text, version); err == nil {
		return text, nil
	}
	before, after, found := strings.Cut(text, unreleasedTitle)
	if !found {
		return "", fmt.Errorf("%s has neither a section of %s nor an unreleased one", changelog, version)
	}
	title := fmt.Sprintf("\n## [%s] - %s\n", strings.TrimPrefix(version, "v"), date)
	text = before + unreleasedTitle + title + after
	_, err := section(text, version)
	return text, err
}

// section returns the text below the title of version.
func section(text, version string) (string, error) {
	_, text, found := strings.Cut(text, "\n## ["+strings.TrimPrefix(version, "v")+"]")
	if _, text, _ = strings.Cut(text, "\n"); !found || strings.HasPrefix(text, "## ") {
		return "", fmt.Errorf("%s has no section of %s", changelog, version)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("%s: the section of %s is empty", changelog, version)
	}
	return text + "\n", nil
}

var (
	wrapped  = regexp.MustCompile(`([^\n])\n *([^-#|\s])`) // a line that goes on in the next one
	relative = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)
)

// notes returns the text of the release on GitHub, where a line break is shown as one, and links
// have to be absolute.
func notes(text, module, version string) (string, error) {
	text, err := section(text, version)
	if err != nil {
		return "", err
	}
	text = wrapped.ReplaceAllString(text, "$1 $2")
	return relative.ReplaceAllString(text, "](https://"+module+"/blob/"+version+"/$1$2)"), nil
}

func readChangelog(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, changelog))
	return string(text), err
}
