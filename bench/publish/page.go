package publish

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// block is a part of a page that is made from data.
var block = regexp.MustCompile(`(?s)(<!-- figures: (\S+) -->\n).*?(<!-- /figures -->)`)

// maxLine is the length of the longest line, tables aside.
const maxLine = 100

// fill returns the text with each of its blocks replaced by the one of that name, whose sentences
// are wrapped.
func fill(text string, blocks map[string]string) (string, error) {
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
	if strings.HasPrefix(line, "|") || len(line) <= maxLine+len("\n") {
		return line
	}
	indent := ""
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "  ") {
		indent = "  "
	}
	at := strings.LastIndexByte(line[:maxLine+1], ' ')
	if at < len("- ") {
		return line
	}
	return line[:at] + "\n" + wrap(indent+line[at+1:])
}
