// Package chart draws figures of stores as SVG files.
package chart

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Series are the figures of one store.
type Series struct {
	Name   string
	Values []float64 // NaN for none
}

// palette begins with the color that stands out, for the store that the charts are
// about. The others can be told apart by the color-blind as well.
var palette = []color.RGBA{
	{0xd5, 0x2b, 0x1e, 0xff}, {0x00, 0x72, 0xb2, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
	{0x00, 0x9e, 0x73, 0xff},
	{0xf0, 0xe4, 0x42, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0x77, 0x77, 0x77, 0xff},
	{0x33, 0x33, 0x33, 0xff}, {0xaa, 0xaa, 0xaa, 0xff}, {0x8b, 0x5a, 0x2b, 0xff},
	{0x6a, 0x3d, 0x9a, 0xff},
	{0xb2, 0xdf, 0x8a, 0xff}, {0xfb, 0x9a, 0x99, 0xff},
}

var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{},
	draw.RingGlyph{}, draw.BoxGlyph{},
	draw.CrossGlyph{}, draw.PlusGlyph{},
}

// Bars draws one group of bars for each of groups.
func Bars(file, title, unit string, groups []string, series []Series) error {
	p := newPlot(title)
	p.Y.Label.Text = unit
	units := float64(len(groups)) + 0.7 // what is more is for the legend
	wide := max(480, 5*units*float64(len(series)+1))
	width := min(vg.Points(0.875*wide/units/float64(len(series)+1)), vg.Points(18))
	for i, s := range series {
		bars, err := plotter.NewBarChart(numbers(s.Values), width)
		if err != nil {
			return fmt.Errorf("chart: draw %s: %s: %w", title, s.Name, err)
		}
		bars.Color = palette[i%len(palette)]
		bars.LineStyle.Width = 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(series)-1)/2)
		p.Add(bars)
		p.Legend.Add(s.Name, bars)
	}
	p.NominalX(groups...)
	p.X.Min, p.X.Max = -0.5, units-0.5
	p.Y.Min, p.Y.Max = 0, 1.05*p.Y.Max
	return save(p, file, vg.Points(wide), vg.Points(300))
}

// numbers replaces what is missing: a bar of height 0 is none.
func numbers(values []float64) plotter.Values {
	ns := slices.Clone(values)
	for i, v := range ns {
		if math.IsNaN(v) {
			ns[i] = 0
		}
	}
	return ns
}

// Lines draws a line for each of series, with a point above each of ticks, on a
// scale where each step is ten times the one before. What is not above 0 is
// missing.
func Lines(file, title, unit string, ticks []string, series []Series) error {
	p := newPlot(title)
	p.Y.Label.Text = unit
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	for i, s := range series {
		line, dots, err := plotter.NewLinePoints(above(s.Values))
		if errors.Is(err, plotter.ErrNoData) {
			continue
		}
		if err != nil {
			return fmt.Errorf("chart: draw %s: %s: %w", title, s.Name, err)
		}
		line.Color, dots.Color = palette[i%len(palette)], palette[i%len(palette)]
		dots.Shape, dots.Radius = glyphs[i%len(glyphs)], vg.Points(2.5)
		p.Add(line, dots)
		p.Legend.Add(s.Name, line, dots)
	}
	if math.IsInf(p.Y.Min, 0) {
		return fmt.Errorf("chart: draw %s: no figure above 0", title)
	}
	p.NominalX(ticks...)
	p.X.Min, p.X.Max = -0.2, max(1, 1.3*float64(len(ticks)-1)) // what is more is for the legend
	return save(p, file, vg.Points(520), vg.Points(340))
}

// above returns the values above 0 at the places of their ticks.
func above(values []float64) plotter.XYs {
	var xys plotter.XYs
	for i, v := range values {
		if v > 0 {
			xys = append(xys, plotter.XY{X: float64(i), Y: v})
		}
	}
	return xys
}

// Dots draws a line for each of rows, the first one on top, and on it a dot for
// each of series.
func Dots(file, title, unit string, rows []string, series []Series) error {
	p := newPlot(title)
	p.X.Label.Text = unit
	p.Add(plotter.NewGrid())
	legend := make([]*plotter.Scatter, len(series))
	for i, s := range slices.Backward(series) { // the first one on top of the others
		xys := points(s.Values)
		if len(xys) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(xys)
		if err != nil {
			return fmt.Errorf("chart: draw %s: %s: %w", title, s.Name, err)
		}
		dots.Color = palette[i%len(palette)]
		dots.Shape = glyphs[i%len(glyphs)]
		dots.Radius = vg.Points(2.5)
		p.Add(dots)
		legend[i] = dots
	}
	for i, s := range series {
		if legend[i] != nil {
			p.Legend.Add(s.Name, legend[i])
		}
	}
	p.X.Max += (p.X.Max - p.X.Min) / 5 // for the legend
	names := slices.Clone(rows)
	slices.Reverse(names)
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	return save(p, file, vg.Points(640), vg.Points(90+11*float64(len(rows))))
}

// points puts the values at the heights of their rows, without what is missing.
func points(values []float64) plotter.XYs {
	var xys plotter.XYs
	for i, v := range values {
		if !math.IsNaN(v) {
			xys = append(xys, plotter.XY{X: v, Y: float64(len(values) - 1 - i)})
		}
	}
	return xys
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.BackgroundColor = color.White
	p.Legend.Top = true
	for style, size := range map[*font.Font]vg.Length{
		&p.Title.TextStyle.Font:   11,
		&p.X.Label.TextStyle.Font: 9,
		&p.Y.Label.TextStyle.Font: 9,
		&p.X.Tick.Label.Font:      8,
		&p.Y.Tick.Label.Font:      8,
		&p.Legend.TextStyle.Font:  8,
	} {
		style.Variant, style.Size = "Sans", size
	}
	return p
}

func save(p *plot.Plot, file string, width, height vg.Length) error {
	if err := p.Save(width, height, file); err != nil {
		return fmt.Errorf("chart: write %s: %w", file, err)
	}
	return nil
}
