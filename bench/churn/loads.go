package churn

import (
	"fmt"
	"time"

	"github.com/ringcache/ringcache/bench/store"
)

// Load is what is done to a store.
type Load struct {
	Name string // and the share of the bound that is live

	live    float64
	mb      int // the bound; 0: as usual
	mean    int // of a value; 0: as usual
	ttl     time.Duration
	payload string // kind of the values' content (package payload); "": incompressible bytes

	keys    func(Size) int // ids that are used
	largest func(Size) int // bytes of the largest value
	do      func(*run) error
	check   func(*run) error
}

const (
	usualMB    = 64
	usualMean  = 400
	usualTurns = 6
	smallMB    = 32 // the least bound of fastcache
)

// churning writes keys chosen at random.
var churning = Load{keys: churnKeys, largest: drawnLargest, do: doChurn, check: checkAll}

// Loads lists all loads. bench/README.md describes them.
var Loads = func() (all []*Load) {
	at := func(name string, l Load, lives ...float64) {
		for _, live := range lives {
			one := l
			one.Name, one.live = fmt.Sprintf("%s %.2g", name, live), live
			all = append(all, &one)
		}
	}
	at("churn", churning, 0.3, 0.5, 0.7, 0.85, 0.95)
	zipf := churning
	zipf.do = doChurnZipf
	at("churn-zipf", zipf, 0.7, 0.95)
	zipf.payload = "json"
	at("churn-json", zipf, 1.5)
	large := churning
	large.mean = usualMB << 20 / 2048 // all are large ones to ringcache
	at("churn-large", large, 0.7)
	at("grow-ttl", Load{ttl: time.Hour, keys: Size.entries, largest: drawnLargest, do: doGrow,
		check: checkAll}, 0.15, 0.4, 0.7)
	at("append", Load{keys: Size.entries, largest: drawnLargest, do: doAppend, check: checkParts},
		0.15, 0.4, 0.7)
	at("invalidate", Load{keys: Size.entries, largest: drawnLargest, do: doInvalidate,
		check: checkInvalidated}, 0.8)
	at("delete-half", Load{keys: halfKeys, largest: drawnLargest, do: doDeleteHalf,
		check: checkHalf}, 0.72)
	at("mixed", Load{mb: mixedMB, mean: mixedMean, keys: churnKeys,
		largest: func(Size) int { return mixedMost }, do: doMixed, check: checkAll}, mixedLive)
	return all
}()

// Fits reports whether the store can take part.
func (l *Load) Fits(info store.Info) bool {
	return info.Name != store.Null && (l.ttl == 0 || info.Expires)
}

// size returns that of a run, or that of a smoke test.
func (l *Load) size(small bool) Size {
	s := Size{MB: usualMB, Mean: usualMean, Live: l.live, Turns: usualTurns}
	if small {
		s.MB, s.Turns = smallMB, 1
	}
	if l.mb > 0 {
		s.MB = l.mb
	}
	if l.mean > 0 {
		s.Mean = l.mean
	}
	return s
}
