package hitratio

import (
	"math"
	"sync"
)

// Guesses remembers which MaxBytes met a target, so that the next search for the
// same store begins close by. It is safe for concurrent use.
type Guesses struct {
	mu    sync.Mutex
	known map[string][]guess // by store and what was to be equal
}

type guess struct {
	entryBytes int
	target     int64
	ratio      float64 // MaxBytes to target
}

// Next returns where to begin: the ratio of the most similar search so far.
func (g *Guesses) Next(kind string, entryBytes int, target int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	ratio, nearest := 1.0, math.Inf(1)
	for _, k := range g.known[kind] {
		// The size of entries is what decides about overhead; the target much less.
		d := math.Abs(math.Log(float64(k.entryBytes)/float64(entryBytes))) +
			math.Abs(math.Log(float64(k.target)/float64(target)))/4
		if d < nearest {
			ratio, nearest = k.ratio, d
		}
	}
	return int(ratio * float64(target))
}

// Learn notes a search that has succeeded.
func (g *Guesses) Learn(kind string, entryBytes int, target int64, nominal int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		g.known = map[string][]guess{}
	}
	g.known[kind] = append(g.known[kind],
		guess{entryBytes, target, float64(nominal) / float64(target)})
}
