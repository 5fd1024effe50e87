// Package chart draws figures of stores as SVG files. They consist of plain rectangles
// and lines of text with room to spare, so that they look alike whatever draws them, and with
// whatever font.
package chart

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"os"
	"slices"
	"strings"
)

// Series are the figures of one store.
type Series struct {
	Name   string
	Values []float64 // NaN for none
}

// ours reports whether a store is the one that charts are about.
func ours(name string) bool { return strings.HasPrefix(name, "ringcache") }

// Sizes and colors of all charts.
const (
	width    = 900
	fontSize = 15
	line     = 24 // from one line of text to the next
	margin   = 16

	accent = "#c8281e"
	grey   = "#9a9a9a"
	ink    = "#222222"
)

// drawing is an SVG file in the making.
type drawing struct {
	strings.Builder
	y float64 // of the next line of text
}

func (d *drawing) text(x, y float64, anchor, style, text string) {
	fmt.Fprintf(d, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\"%s>%s</text>\n",
		x, y, anchor, ink, style, html.EscapeString(text))
}

func (d *drawing) rect(x, y, w, h float64, color string) {
	fmt.Fprintf(d, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
		x, y, w, h, color)
}

const bold = ` font-weight="bold"`

func begin(title, unit string) *drawing {
	d := &drawing{y: margin + fontSize}
	d.text(margin, d.y, "start", bold, title+", "+unit)
	d.y += line
	return d
}

// save writes the file, which is as high as what was drawn.
func (d *drawing) save(file string) error {
	text := fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "+
		"viewBox=\"0 0 %d %.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"%d\">\n"+
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
		width, d.y, width, d.y, fontSize, d.String())
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}

const (
	barLeft  = 210 // of all bars
	barRight = 780 // of the longest one; its figure stands beyond
	barHigh  = 16
)

// Bars draws for each of groups a bar for each of series, sorted, the best one on top, with its
// figure. more says that the best is the most; without it, the least.
func Bars(file, title, unit string, more bool, groups []string, series []Series) error {
	most := 0.0
	for _, s := range series {
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				most = max(most, v)
			}
		}
	}
	d := begin(title, unit)
	for i, group := range groups {
		if group != "" {
			d.text(margin, d.y, "start", "", group)
			d.y += line
		}
		for _, b := range sorted(series, i, more) {
			d.bar(b, most)
		}
		d.y += line / 2
	}
	return d.save(file)
}

type bar struct {
	name  string
	value float64
}

// sorted returns the bars of a group.
func sorted(series []Series, group int, more bool) (bars []bar) {
	for _, s := range series {
		if v := s.Values[group]; !math.IsNaN(v) {
			bars = append(bars, bar{s.Name, v})
		}
	}
	slices.SortStableFunc(bars, func(a, b bar) int {
		if more {
			a, b = b, a
		}
		return cmp.Compare(a.value, b.value)
	})
	return bars
}

func (d *drawing) bar(b bar, most float64) {
	color, style := grey, ""
	if ours(b.name) {
		color, style = accent, bold
	}
	long := 0.0
	if most > 0 {
		long = max(0, b.value) / most * (barRight - barLeft)
	}
	d.text(barLeft-10, d.y, "end", style, b.name)
	d.rect(barLeft, d.y-barHigh+3, max(1, long), barHigh, color)
	d.text(barLeft+max(1, long)+8, d.y, "start", style, number(b.value))
	d.y += line
}

// number prints three significant digits or more.
func number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
