package ring

import "github.com/ringcache/ringcache/internal/record"

// How a record gets a value of another length where it lies: the bytes that it does not need
// any more become a separate dead record, and those that it needs are taken from dead records
// behind it.

// mostDead is how many dead records behind a live one are looked at.
const mostDead = 8

// RoomAt returns the bytes that the live record at pos, with header h, can have for one of
// n bytes with a header of the same form: its own, and those of as many dead records behind it
// as it takes. What is left over is enough for a dead record, or 0.
func (r *Ring) RoomAt(pos uint64, h record.Header, n int) (room int, ok bool) {
	if len(r.Run(pos)) < h.Size {
		return 0, false // the length could not be changed in one step
	}
	room = h.Total()
	for looked := 0; room != n && room < n+r.form.MinDead(); looked++ {
		next := pos + uint64(room)
		if next&r.Mask == r.Head() || looked == mostDead {
			return 0, false
		}
		d, ok := r.Header(next)
		if !ok || !d.Dead {
			return 0, false
		}
		room += d.Total()
	}
	whole := room - h.Size - h.KeyLen // the value's length while Refit is under way
	return room, r.form.HeaderSize(h.KeyLen, whole, h.Deadlines) == h.Size
}

// Refit makes the value of the live record at pos, with header h, one of vlen bytes, which the
// caller is going to write. room is what RoomAt has returned. It does not move the borders of
// the ring, and at each step all bytes are part of a record (I14).
func (r *Ring) Refit(pos uint64, h record.Header, vlen, room int) {
	n := h.Size + h.KeyLen + vlen
	if room > h.Total() { // first the record has all bytes, then it gives up what it does not need
		h.PutValueLen(r.Run(pos), room-h.Size-h.KeyLen)
	}
	if left := room - n; left > 0 {
		var buf [record.MaxHeader]byte
		r.Write(pos+uint64(n), r.form.PutDead(&buf, left))
	}
	h.PutValueLen(r.Run(pos), vlen)
	r.EntryBytes += n - h.Total()
	r.DeadBytes -= n - h.Total()
}
