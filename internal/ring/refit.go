package ring

import "github.com/ringcache/ringcache/internal/record"

// How the value of a record changes its length in place: bytes that are no longer needed become a
// separate dead record, and additional bytes are taken from the dead records that follow.

// mostDead is the maximum number of dead records after a live one that are examined.
const mostDead = 8

// RoomAt returns the bytes available to turn the live record at pos, with header h, into one of n
// bytes with a header of the same form: its own bytes, and those of as many of the dead records
// after it as are needed. The remainder is 0, or enough for a dead record.
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
	return room, r.form.HeaderSize(h.Kind, h.KeyLen, whole, h.Deadlines) == h.Size
}

// Refit changes the length of the value of the live record at pos, with header h, to vlen; the
// caller then writes the value. room is the result of RoomAt. Refit does not move the ends of the
// ring, and after each step all bytes are part of a record (I14).
func (r *Ring) Refit(pos uint64, h record.Header, vlen, room int) {
	n := h.Size + h.KeyLen + vlen
	if room > h.Total() { // first the record gets all bytes, then it gives some up
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
