package ring

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/record"
)

// Values that change their length in place leave a ring of whole records, live ones with their
// bytes and dead ones that fill what is between, and exact counts.
func TestRing_RefitKeepsRecordsWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	p := newPool(t)
	var r Ring
	r.Init(p, testShift, 20)
	type live struct {
		pos   uint64
		value []byte
	}
	var all []live
	write := func(l *live, h record.Header) {
		for i := range l.value {
			l.value[i] = byte(rnd.Uint32())
		}
		r.Write(l.pos+uint64(h.Size+h.KeyLen), l.value)
	}
	header := func(pos uint64) record.Header {
		h, ok := r.AnyHeader(pos)
		require.True(t, ok)
		return h
	}
	for range 100 {
		n := rnd.IntN(300)
		require.NoError(t, r.Extend(uint64(n+record.MaxHeader+1), 1000))
		var buf [record.MaxHeader]byte
		l := live{value: make([]byte, n)}
		times := record.Times{Deadlines: record.Deadlines(rnd.IntN(3))}
		l.pos = r.Append(record.Plain.Put(&buf, record.Value, 1, n, times), []byte{7}, l.value)
		h := header(l.pos)
		r.Count(1, h.Total(), h.Deadlines != record.Timeless)
		write(&l, h)
		all = append(all, l)
	}
	shorter, longer, refused := 0, 0, 0
	for range 20_000 {
		l := &all[rnd.IntN(len(all))]
		h, n := header(l.pos), rnd.IntN(300)
		room, ok := r.RoomAt(l.pos, h, h.Size+h.KeyLen+n)
		switch {
		case !ok:
			refused++
			continue
		case n < h.ValueLen:
			shorter++
		case n > h.ValueLen:
			longer++
		}
		r.Refit(l.pos, h, n, room)
		l.value = make([]byte, n)
		h.ValueLen = n
		require.Equal(t, h, header(l.pos))
		write(l, h)
	}
	for what, n := range map[string]int{"shorter": shorter, "longer": longer, "refused": refused} {
		require.Greater(t, n, 1000, what)
	}
	var has Counts
	next := 0
	for pos := r.Tail; pos != r.Head(); {
		h := header(pos)
		if h.Dead {
			has.DeadBytes += h.Total()
		} else {
			has.Count(1, h.Total(), h.Deadlines != record.Timeless)
			require.Equal(t, all[next].pos, pos)
			require.True(t, r.Equal(pos+uint64(h.Size+h.KeyLen), all[next].value))
			next++
		}
		pos += uint64(h.Total())
	}
	require.Equal(t, len(all), next)
	require.Equal(t, has, r.Counts)
}

// A ring that may hold more chunks than when its head borrowed one is not full: the head gets its
// own, with what it had written.
func TestRing_BorrowedChunkIsGivenBack(t *testing.T) {
	q := newQueue(t, newPool(t), rand.New(rand.NewPCG(3, 4)))
	for q.ring.Fits(50, 3) {
		q.append(50, 3)
	}
	for !q.ring.borrowed {
		q.release()
		for q.ring.Fits(50, 3) {
			q.append(50, 3)
		}
	}
	require.False(t, q.ring.Fits(200, 3))
	require.True(t, q.ring.Fits(200, 4))
	q.append(200, 4)
	require.False(t, q.ring.borrowed)
	require.Equal(t, 4, q.ring.Held())
	q.check()
	for len(q.recs) > 0 {
		q.release()
		q.check()
	}
}
