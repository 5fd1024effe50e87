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
	Values []Value
}

// Value is a figure, and the range of the rounds that it is the median of.
type Value struct{ Median, Min, Max float64 }

// None is the value of a store that has no figure.
var None = Value{math.NaN(), math.NaN(), math.NaN()}

// Single returns a figure without a range.
func Single(v float64) Value { return Value{v, v, v} }

func (v Value) isNone() bool { return math.IsNaN(v.Median) }

// Scale says which length a bar has.
type Scale int

const (
	Linear Scale = iota
	Log          // from a tenth of the least figure
)

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
// figure and a line from the least to the greatest of its rounds. more says that the best is the
// most; without it, the least.
func Bars(
	file, title, unit string, scale Scale, more bool, groups []string, series []Series,
) error {
	a := newAxis(scale, series)
	d := begin(title, unit)
	for i, group := range groups {
		if group != "" {
			d.text(margin, d.y, "start", "", group)
			d.y += line
		}
		for _, b := range sorted(series, i, more) {
			d.bar(b, a)
		}
		d.y += line / 2
	}
	return d.save(file)
}

// axis maps figures to lengths.
type axis struct {
	scale       Scale
	least, most float64
}

func newAxis(scale Scale, series []Series) axis {
	a := axis{scale: scale, least: math.Inf(1)}
	for _, s := range series {
		for _, v := range s.Values {
			if !v.isNone() {
				a.most = max(a.most, v.Max)
			}
			if v.Min > 0 {
				a.least = min(a.least, v.Min)
			}
		}
	}
	return a
}

// x is where a figure lies.
func (a axis) x(v float64) float64 {
	const long = barRight - barLeft
	switch {
	case v <= 0 || a.most <= 0:
		return barLeft
	case a.scale == Log:
		start := math.Log(a.least / 10)
		return barLeft + long*(math.Log(v)-start)/(math.Log(a.most)-start)
	}
	return barLeft + long*v/a.most
}

type bar struct {
	name  string
	value Value
}

// sorted returns the bars of a group.
func sorted(series []Series, group int, more bool) (bars []bar) {
	for _, s := range series {
		if v := s.Values[group]; !v.isNone() {
			bars = append(bars, bar{s.Name, v})
		}
	}
	slices.SortStableFunc(bars, func(a, b bar) int {
		if more {
			a, b = b, a
		}
		return cmp.Compare(a.value.Median, b.value.Median)
	})
	return bars
}

func (d *drawing) bar(b bar, a axis) {
	color, style := grey, ""
	if ours(b.name) {
		color, style = accent, bold
	}
	end := max(barLeft+1, a.x(b.value.Median))
	d.text(barLeft-10, d.y, "end", style, b.name)
	d.rect(barLeft, d.y-barHigh+3, end-barLeft, barHigh, color)
	if from, to := a.x(b.value.Min), a.x(b.value.Max); to-from >= 1 {
		d.rect(from, d.y-barHigh/2+2, to-from, 2, ink)
		end = max(end, to)
	}
	d.text(end+8, d.y, "start", style, number(b.value.Median))
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
