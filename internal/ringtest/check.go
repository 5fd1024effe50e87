package ringtest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/store"
)

// The invariants of a bucket. They have the numbers of docs/design.md.

// checkBucket walks a bucket and returns an error for each invariant that does not hold, by its
// number. For a large bucket, it adds its keys to large, as LargeKeys counts them (I8). A closed
// bucket has nothing to check.
func checkBucket(b *store.Store, large map[*atomic.Int64]int64) error {
	if b.Closed {
		return nil
	}
	live, err := checkRings(b, large)
	if err != nil {
		return err
	}
	return errors.Join(checkIndex(b, live), checkCold(b))
}

// place is where a record lies.
type place struct {
	ring policy.Ring
	pos  uint64
}

// checkRings checks what the rings hold, and returns the live records with the hashes of
// their keys.
func checkRings(
	b *store.Store, large map[*atomic.Int64]int64,
) (live map[place]uint64, err error) {
	live = map[place]uint64{}
	for in := range policy.Ring(policy.Rings) {
		r := b.Ring(in)
		err := checkRing(r, func(pos uint64, hd record.Header) error {
			if hd.Dead {
				return nil
			}
			key, _ := r.Read(nil, pos+uint64(hd.Size), hd.KeyLen)
			hash := b.Shared.HashOf(key, hd.Kind)
			live[place{in, pos}] = hash
			if b.Large {
				large[b.Shared.LargeKeysOf(hash)] += store.LargeKey(hash)
			}
			if t := r.Times(pos, hd); t.Last != 0 && clock.Earlier(t.Expiry, t.Last) != t.Expiry {
				return fmt.Errorf("I11: a record expires in tick %d, its last deadline is %d",
					t.Expiry, t.Last)
			}
			if hd.Deadlines != record.Timeless && !b.FindsInTime(hd.Expiry) {
				return fmt.Errorf("I11: the search begins after tick %d, in which a record expires",
					hd.Expiry)
			}
			return checkKind(b, in, pos, hd)
		})
		if err != nil {
			return nil, fmt.Errorf("ring %d: %w", in, err)
		}
	}
	return live, nil
}

// checkIndex checks the slots against the live records.
func checkIndex(b *store.Store, live map[place]uint64) error {
	var errs []error
	failf := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	var used [policy.Rings]int32
	b.Index.Each(func(slot, tag uint64) {
		at := place{index.Ring(slot), index.Pos(slot)}
		used[index.Ring(slot)]++
		if r := b.Ring(at.ring); !r.Live(slot) {
			if r.Age(slot) > r.Mask/4*3 {
				failf("I5: a stale slot of age %d in a space of %d", r.Age(slot), r.Mask)
			}
			return
		}
		want, ok := live[at]
		if !ok {
			failf("I7: a live slot without a live record")
		} else if _, found := b.Index.Find(want, at.ring, at.pos); !found || tag != index.Tag(want) {
			failf("I4, I7: slot %x is not where hash %x is sought", slot, want)
		}
		delete(live, at)
	})
	if used != b.Index.Used {
		failf("I9: counts %v slots of the rings, has %v", b.Index.Used, used)
	}
	if len(live) > 0 {
		failf("I7: %d live records have no slot", len(live))
	}
	return errors.Join(errs...)
}

// hasCold reports whether a bucket may have a cold part.
func hasCold(b *store.Store) bool { return b.Shared.Compression != nil && !b.Large }

// checkCold checks the cold part.
func checkCold(b *store.Store) error {
	queue, s := b.Ring(policy.Queue), b.Ring(policy.Cold)
	if n := queue.Held() + s.Held(); n > 0 && !(hasCold(b) && b.ColdBegun()) {
		return fmt.Errorf("I16: the cold part holds %d chunks, and has not begun (or large: %v)",
			n, b.Large)
	}
	return nil
}

// checkKind checks that a live record may be in its ring.
func checkKind(b *store.Store, in policy.Ring, pos uint64, hd record.Header) error {
	switch kind := hd.Kind.Base(); {
	case !hasCold(b):
	case kind == record.Packed && in != policy.Cold:
		return fmt.Errorf("I16: a packed record in ring %d", in)
	case kind == record.Packed && !hasDict(b, pos, hd):
		return fmt.Errorf("I16: the record at %d needs a dictionary that does not exist", pos)
	case kind == record.Negative && in >= policy.Queue:
		return fmt.Errorf("I16: a negative entry in ring %d", in)
	}
	return nil
}

// hasDict reports whether there is the dictionary that the packed record at pos of the cold ring
// needs. A number that is impossible is damage.
func hasDict(b *store.Store, pos uint64, hd record.Header) bool {
	if hd.ValueLen == 0 {
		return true
	}
	dict := b.Ring(policy.Cold).Run(pos + uint64(hd.Size+hd.KeyLen))[0]
	return dict >= cold.Dicts || b.Shared.Compression.Dicts[dict].Load() != nil
}

// checkRing checks a ring, and calls fn with each record, dead ones too.
func checkRing(r *ring.Ring, fn func(pos uint64, h record.Header) error) error {
	if r.Size > r.Mask/4 {
		return fmt.Errorf("I3: %d live bytes in a space of %d", r.Size, r.Mask)
	}
	chunks, seen := r.Chunks(), map[chunk.Ref]int{}
	for i, c := range chunks {
		first, dup := seen[c]
		borrowed := first == 0 && i == len(chunks)-1
		if c == (chunk.Ref{}) || dup && !borrowed {
			return fmt.Errorf("I2: slots %d and %d hold one chunk, or none", first, i)
		}
		seen[c] = i
	}
	if len(seen) != r.Held() {
		return fmt.Errorf("I2: holds %d chunks, has %d", r.Held(), len(seen))
	}
	if len(chunks) > r.Held() && !r.Fits(0, 0) {
		return fmt.Errorf("I1: %d bytes in %d chunks", r.Size, r.Held())
	}
	if err := r.ValidateFile(); err != nil {
		return err
	}
	var has ring.Counts
	for off := uint64(0); off < r.Size; {
		pos := (r.Tail + off) & r.Mask
		h, ok := r.Header(pos)
		if !ok {
			return fmt.Errorf("I2: no record at position %d", pos)
		}
		if !h.Dead && !r.IsWhole(pos, h) {
			return fmt.Errorf("I14: the record at %d fails its checksum", pos)
		}
		if !h.Dead {
			has.Count(1, h.Total(), h.Deadlines != record.Timeless)
		} else {
			has.DeadBytes += h.Total()
		}
		if err := fn(pos, h); err != nil {
			return err
		}
		off += uint64(h.Total())
	}
	if has != r.Counts {
		return fmt.Errorf("I7, I10: counts %+v, has %+v", r.Counts, has)
	}
	return nil
}
