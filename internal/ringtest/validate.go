package ringtest

import (
	"errors"
	"fmt"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Validate walks every bucket and checks the invariants of docs/design.md, under
// all locks that it needs. It names the invariant that does not hold.
func Validate(c *ringcache.Cache) error {
	arena := testhook.Arena(c)
	arena.Lock()
	defer arena.Unlock()
	var errs []error
	large := map[int]int{}
	for i := range Shared(c).Buckets + store.LargeBuckets {
		b := Nth(c, i)
		b.Mu.Lock()
		if err := validateLocked(b, large); err != nil && !b.Closed {
			errs = append(errs, fmt.Errorf("bucket %d: %w", i, err))
		}
		b.Mu.Unlock()
	}
	for i := range Shared(c).LargeKeys {
		if n := int(Shared(c).LargeKeys[i].Load()); n != large[i] {
			errs = append(errs, fmt.Errorf("I8: bucket %d counts %d large keys, has %d", i, n, large[i]))
		}
	}
	if err := Shared(c).Pool.Validate(); err != nil && !testhook.Unfinished(c) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// validateLocked checks a bucket. It counts the keys of a large one by their small
// buckets.
func validateLocked(b Bucket, large map[int]int) error {
	if b.Seq.Load()%2 != 0 {
		return fmt.Errorf("I13: the sequence is %d while nobody writes", b.Seq.Load())
	}
	var errs []error
	failf := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	type place struct {
		ring policy.Ring
		pos  uint64
	}
	records, internal := map[place]uint64{}, 0 // to the hash of the key
	for i := range b.InUse() {
		r := b.Ring(i)
		err := validateRing(r, func(pos uint64, hd record.Header) error {
			if hd.Dead {
				return nil
			}
			if hd.Kind == record.Internal {
				internal++
			}
			hash := b.KeyHash(r, pos, hd)
			records[place{i, pos}] = hash
			if b.Large {
				large[int(hash&(store.BucketCount-1))]++
			}
			if hd.Expiry != 0 && !b.Expirer.Walking && b.Shared.KeptUntil(hd.Expiry) < b.Expirer.Soonest {
				return fmt.Errorf("I11: a record that expires in tick %d is to go before the soonest, %d",
					hd.Expiry, b.Expirer.Soonest)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("ring %d: %w", i, err)
		}
		if r.Expiring > 0 && !b.HasTTL {
			return fmt.Errorf("I11: ring %d has records that can expire, unknown to the bucket", i)
		}
	}
	var used [index.Parts]int
	b.Index.Each(func(slot, tag uint64) {
		in := index.Ring(slot)
		at := place{in, index.Pos(slot)}
		used[index.PartOf(slot)]++
		if r := b.Ring(in); !r.Live(slot) {
			if r.Age(slot) > r.Mask/4*3 {
				failf("I5: a stale slot of age %d in a space of %d", r.Age(slot), r.Mask)
			}
			return
		}
		want, ok := records[at]
		if !ok {
			failf("I7: a live slot without a live record")
		} else if _, found := b.Index.Find(want, in, at.pos); !found || tag != index.Tag(want) {
			failf("I4, I7: slot %x is not where hash %x is sought", slot, want)
		}
		delete(records, at)
	})
	if err := validateColdLocked(b); err != nil {
		errs = append(errs, err)
	}
	if internal != b.Internals {
		failf("I7: counts %d records of the cache's own, has %d", b.Internals, internal)
	}
	if used != b.Index.Used() {
		failf("I9: counts %v slots of the rings, has %v", b.Index.Used(), used)
	}
	if len(records) > 0 {
		failf("I7: %d live records have no slot", len(records))
	}
	return errors.Join(errs...)
}

// validateColdLocked checks the cold part of a bucket.
func validateColdLocked(b Bucket) error {
	c := b.Cold
	if !c.On {
		if c != &b.Shared.NoCold || c.Size()+c.Entries()+c.Queue().Held()+c.Store().Held() != 0 {
			return errors.New("a bucket without a cold part has something in it")
		}
		return nil
	}
	if b.Large || c.Held() > 0 && !c.Begun {
		return fmt.Errorf("the cold part holds %d chunks, and has not begun (or large: %v)",
			c.Held(), b.Large)
	}
	for in := range b.InUse() {
		err := validateRing(b.Ring(in), func(pos uint64, hd record.Header) error {
			switch {
			case hd.Dead || hd.Kind == record.Value:
			case hd.Kind == record.Packed && in != policy.Cold:
				return fmt.Errorf("a packed record in ring %d", in)
			case hd.Kind == record.Negative && in.IsCold():
				return fmt.Errorf("a negative entry in ring %d", in)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if uses := CountUses(b); uses != c.Uses {
		return fmt.Errorf("counts the uses of dictionaries %v, has %v", uses, c.Uses)
	}
	for i, n := range c.Uses {
		if n > 0 && b.Shared.Compression.Dicts[i].Load() == nil {
			return fmt.Errorf("%d records need dictionary %d, which is none", n, i)
		}
	}
	return nil
}

// validateRing checks a ring, and calls fn with each record, dead ones too.
func validateRing(r *ring.Ring, fn func(pos uint64, h record.Header) error) error {
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
	if len(chunks) > r.Held() && r.Size > r.Room(0) {
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
		if !h.Dead {
			has.Count(1, h.Total(), h.HasExpiry)
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
