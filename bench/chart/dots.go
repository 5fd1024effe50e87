package chart

import (
	"fmt"
	"math"
)

const (
	dotLeft  = 330 // of the scale
	dotRight = 880
	dotLine  = 20
	dotSize  = 5
)

// Dots draws a line for each of rows, the first one on top, and on it a dot at its value. All are
// of the store that charts are about. Zero has a dark line.
func Dots(file, title, unit string, rows []string, values []float64) error {
	d := begin(title, unit)
	least, most := bounds(values)
	at := func(v float64) float64 { return dotLeft + (v-least)/(most-least)*(dotRight-dotLeft) }
	top, bottom := d.y-10, d.y+dotLine*float64(len(rows))-10
	step := tick(most - least)
	for v := math.Ceil(least/step) * step; v <= most; v += step {
		color := faint
		if math.Abs(v) < step/2 {
			color = ink
		}
		d.segment(at(v), top, at(v), bottom, color)
		d.text(at(v), bottom+fontSize+4, "middle", "", fmt.Sprintf("%.4g", v+0))
	}
	for i, name := range rows {
		d.text(dotLeft-12, d.y+5, "end", "", name)
		d.segment(dotLeft, d.y, dotRight, d.y, faint)
		fmt.Fprintf(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n", at(values[i]), d.y,
			dotSize, accent)
		d.y += dotLine
	}
	d.y += line
	return d.save(file)
}

// bounds returns the least and the most of the values.
func bounds(values []float64) (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		least, most = min(least, v), max(most, v)
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
