package payload

import (
	"bytes"
	"compress/flate"
	"testing"
)

// packed returns how many bytes flate makes of n values.
func packed(t *testing.T, p *Payload, n int) (from, to int) {
	t.Helper()
	for id := range uint64(n) {
		v := make([]byte, 300+9*id)
		p.Fill(v, id)
		var out bytes.Buffer
		w, err := flate.NewWriter(&out, flate.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(v)
		w.Close()
		from, to = from+len(v), to+out.Len()
	}
	return from, to
}

func TestFill_IsOfTheIDAlone(t *testing.T) {
	for _, kind := range Kinds {
		p, err := New(kind)
		if err != nil {
			t.Skip(err) // a machine with few files
		}
		seen := map[string]bool{}
		for id := range uint64(2000) {
			a, b := make([]byte, 300+id), bytes.Repeat([]byte{1}, int(300+id))
			p.Fill(a, id)
			p.Fill(b, id)
			if !bytes.Equal(a, b) {
				t.Fatalf("%s: id %d has two values", kind, id)
			}
			seen[string(a)] = true
		}
		v := make([]byte, 3000)
		if n := testing.AllocsPerRun(100, func() { p.Fill(v, 1) }); n > 0 {
			t.Errorf("%s: %v allocations", kind, n) // they would be garbage beside that of a store
		}
		if len(seen) < 1950 { // files have some runs of equal bytes
			t.Errorf("%s: %d values of 2,000 are different", kind, len(seen))
		}
	}
}

func TestFill_CompressesAsItsKindDoes(t *testing.T) {
	for kind, least := range map[string]float64{"json": 2, "proto": 1.3, "random": 0.9} {
		p, err := New(kind)
		if err != nil {
			t.Skip(err)
		}
		from, to := packed(t, p, 300)
		ratio := float64(from) / float64(to)
		if ratio < least || kind == "random" && ratio > 1.01 {
			t.Errorf("%s: ratio %.2f", kind, ratio)
		}
	}
}

func TestNew_UnknownKind(t *testing.T) {
	if _, err := New("xml"); err == nil {
		t.Error("no error")
	}
}
