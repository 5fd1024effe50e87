package ringdebug

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// byteCount is a number of bytes that is printed in the largest unit that makes it at least 1.
type byteCount uint64

func (n byteCount) String() string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", uint64(n))
	}
	const units = "KMGTPE"
	x, u := float64(n)/1024, 0
	for x >= 1023.95 && u < len(units)-1 { // would be printed as 1024.0
		x, u = x/1024, u+1
	}
	return fmt.Sprintf("%.1f %cB", x, units[u])
}

// asUint converts the integers of the template, which are not negative.
func asUint(n any) uint64 {
	switch n := n.(type) {
	case int:
		return uint64(n)
	case uint64:
		return n
	}
	panic(fmt.Sprintf("ringdebug: show number: type is %T", n))
}

// percent formats a fraction.
func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

// timeToLive formats the remaining time to live.
func timeToLive(d time.Duration) string {
	if d == 0 {
		return "never expires"
	}
	return d.Round(time.Second / 10).String()
}

// printable returns s if all of its characters are visible, and otherwise a Go string literal.
func printable(s string) string {
	if strings.ContainsFunc(s, isHidden) {
		return strconv.Quote(s)
	}
	return s
}

// isHidden reports whether a rune is not visible, or stands for invalid UTF-8.
func isHidden(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }

// cut shortens long keys.
func cut(s string) string {
	const most = 160
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// dump returns a value if it is visible text, and otherwise a hex dump of it.
func dump(v []byte) string {
	for i := 0; i < len(v); {
		r, size := utf8.DecodeRune(v[i:])
		isCut := len(v)-i < utf8.UTFMax && len(v) == shownValue && !utf8.FullRune(v[i:])
		if isCut {
			return string(v[:i])
		}
		if isHidden(r) && r != '\n' && r != '\t' {
			return hex.Dump(v)
		}
		i += size
	}
	return string(v)
}
