package chart

import (
	"fmt"
	"math"
	"slices"
)

// marks are the shapes of the grey dots, each drawn around a point.
var marks = []func(d *drawing, x, y float64){
	func(d *drawing, x, y float64) { d.rect(x-4, y-4, 8, 8, grey) },
	func(d *drawing, x, y float64) { d.shape("M%.1f %.1fl5 9h-10z", x, y-5) },
	func(d *drawing, x, y float64) { d.shape("M%.1f %.1fl5 5l-5 5l-5 -5z", x, y-5) },
	func(d *drawing, x, y float64) { d.shape("M%.1f %.1fl5 -9h-10z", x, y+5) },
	func(d *drawing, x, y float64) { d.stroke("M%.1f %.1fl8 8m0 -8l-8 8", x-4, y-4) },
	func(d *drawing, x, y float64) { d.stroke("M%.1f %.1fv10m-5 -5h10", x, y-5) },
	func(d *drawing, x, y float64) { d.stroke("M%.1f %.1fh8v8h-8z", x-4, y-4) },
	func(d *drawing, x, y float64) { d.stroke("M%.1f %.1fl5 9h-10z", x, y-5) },
}

func (d *drawing) shape(path string, x, y float64) {
	fmt.Fprintf(d, "<path d=\""+path+"\" fill=\"%s\"/>\n", x, y, grey)
}

func (d *drawing) stroke(path string, x, y float64) {
	fmt.Fprintf(d, "<path d=\""+path+"\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n",
		x, y, grey)
}

// mark draws the dot of a series.
func (d *drawing) mark(series []Series, i int, x, y float64) {
	if ours(series[i].Name) && i == 0 {
		fmt.Fprintf(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"/>\n", x, y, accent)
		return
	}
	marks[(i+len(marks)-1)%len(marks)](d, x, y)
}

const (
	dotLeft  = 330 // of the scale
	dotRight = 880
	dotLine  = 20
	column   = 215 // of the legend, which has four of them
)

// Dots draws a line for each of rows, the first one on top, and on it a dot for each of series.
// The first series is drawn above the others.
func Dots(file, title, unit string, rows []string, series []Series) error {
	d := begin(title, unit)
	for i, s := range series {
		if i > 0 && i%4 == 0 {
			d.y += line
		}
		x := float64(margin + column*(i%4))
		d.mark(series, i, x+6, d.y-5)
		d.text(x+20, d.y, "start", "", s.Name)
	}
	d.y += line
	least, most := bounds(series)
	at := func(v float64) float64 { return dotLeft + (v-least)/(most-least)*(dotRight-dotLeft) }
	top, bottom := d.y-10, d.y+dotLine*float64(len(rows))-10
	step := tick(most - least)
	for v := math.Ceil(least/step) * step; v <= most; v += step {
		d.segment(at(v), top, at(v), bottom, faint)
		d.text(at(v), bottom+fontSize+4, "middle", "", fmt.Sprintf("%.4g", v+0))
	}
	for i, name := range rows {
		d.text(dotLeft-12, d.y+5, "end", "", name)
		d.segment(dotLeft, d.y, dotRight, d.y, faint)
		for j, s := range slices.Backward(series) {
			if v := s.Values[i]; !math.IsNaN(v) {
				d.mark(series, j, at(v), d.y)
			}
		}
		d.y += dotLine
	}
	d.y += line
	return d.save(file)
}

// bounds returns the least and the most of all values.
func bounds(series []Series) (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	if !(least < most) {
		return least - 1, least + 1
	}
	return least, most
}

// tick returns a round number that divides the span into four to ten steps.
func tick(span float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(span))-1)
	for _, factor := range []float64{1, 2, 5, 10, 20} {
		if span/(step*factor) <= 10 {
			return step * factor
		}
	}
	return step * 25
}
