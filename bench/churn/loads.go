package churn

import "fmt"

// Load is what is done to a store.
type Load struct {
	Name string // and the share of the bound that is live

	live    float64
	mean    int    // of a value; 0: as usual
	payload string // kind of the values' content (package payload); "": incompressible bytes

	keys  func(Size) int // ids that are used
	do    func(*run) error
	check func(*run) error
}

const (
	usualMB    = 64
	usualMean  = 400
	usualTurns = 6
	smallMB    = 32 // the least bound of fastcache
)

// Loads lists all loads. bench/README.md describes them.
var Loads = func() (all []*Load) {
	at := func(name string, l Load, lives ...float64) {
		for _, live := range lives {
			one := l
			one.Name, one.live = fmt.Sprintf("%s %v", name, live), live
			all = append(all, &one)
		}
	}
	churn := Load{keys: churnKeys, do: doChurn, check: checkAll}
	at("churn", churn, 0.3, 0.5, 0.7, 0.85, 0.95)
	large := churn
	large.mean = usualMB << 20 / 2048 // all are large ones to ringcache
	at("churn-large", large, 0.7)
	zipf := churn
	zipf.do = doChurnZipf
	at("churn-zipf", zipf, 0.7, 0.95)
	zipf.payload = "json"
	at("churn-json", zipf, 1.5)
	at("append", Load{keys: Size.entries, do: doAppend, check: checkParts}, 0.15, 0.4, 0.7)
	at("invalidate", Load{keys: Size.entries, do: doInvalidate, check: checkInvalidated}, 0.8)
	at("delete-half", Load{keys: halfKeys, do: doDeleteHalf, check: checkHalf}, 0.72)
	return all
}()

// size returns that of a run, or that of a smoke test.
func (l *Load) size(small bool) Size {
	s := Size{MB: usualMB, Mean: usualMean, Live: l.live, Turns: usualTurns}
	if small {
		s.MB, s.Turns = smallMB, 1
	}
	if l.mean > 0 {
		s.Mean = l.mean
	}
	return s
}
