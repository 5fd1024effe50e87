package ring

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
)

const testShift = 8 // chunks of 256 bytes

// heapMemory is memory of the Go heap that stays reachable as long as the test runs.
func heapMemory(t *testing.T) chunk.Memory {
	var maps [][]uint64
	t.Cleanup(func() { clear(maps) })
	return chunk.Memory{
		Map: func(n int) ([]byte, error) {
			words := make([]uint64, n/8)
			maps = append(maps, words)
			return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), nil
		},
		Unmap:   func([]byte) error { return nil },
		Discard: func([]byte) {},
	}
}

// queue is a ring, and the plain byte queue that it has to be.
type queue struct {
	t    *testing.T
	rnd  *rand.Rand
	ring Ring
	want []byte
	recs []record.Header // of want, the oldest first

	appended uint64 // bytes, ever
}

func newQueue(t *testing.T, p *chunk.Pool, rnd *rand.Rand) *queue {
	q := &queue{t: t, rnd: rnd}
	q.ring.Init(p, testShift, 16) // positions come round often
	return q
}

func newPool(t *testing.T) *chunk.Pool {
	return chunk.NewPool(heapMemory(t), 1<<20, 1<<testShift, chunk.Never)
}

// room returns the capacity of the ring in bytes if it may hold limit chunks.
func (q *queue) room(limit int) uint64 {
	return uint64(max(limit, q.ring.Held())) << q.ring.shift
}

// append appends a record of n bytes, n being 3 or more.
func (q *queue) append(n, limit int) {
	k := make([]byte, q.rnd.IntN(min(n-record.ShortHeader, 63)+1))
	v := make([]byte, n-record.ShortHeader-len(k))
	for _, b := range [][]byte{k, v} {
		for i := range b {
			b[i] = byte(q.rnd.Uint32())
		}
	}
	require.NoError(q.t, q.ring.Extend(uint64(n), limit))
	var buf [record.MaxHeader]byte
	header := record.Plain.Put(&buf, record.Value, len(k), len(v), record.Times{})
	at := q.ring.Head()
	require.Equal(q.t, at, q.ring.Append(header, k, v))
	q.note(append(append(bytes.Clone(header), k...), v...))
	require.True(q.t, q.ring.Equal(at+record.ShortHeader, k))
	h, ok := q.ring.AnyHeader(at)
	require.True(q.t, ok)
	require.Equal(q.t, q.recs[len(q.recs)-1], h)
}

// note says that rec has been appended.
func (q *queue) note(rec []byte) {
	h, ok := record.Plain.Parse(rec)
	require.True(q.t, ok)
	q.ring.Count(1, len(rec), false)
	require.Equal(q.t, q.appended, q.ring.Unwrapped(q.ring.Head()-uint64(len(rec))))
	q.appended += uint64(len(rec))
	q.want, q.recs = append(q.want, rec...), append(q.recs, h)
}

// release releases the oldest record, as a live or as a dead one.
func (q *queue) release() {
	h := q.recs[0]
	q.ring.Count(-1, h.Total(), false)
	if q.rnd.IntN(2) == 0 {
		q.ring.Kill(q.ring.Tail)
		q.ring.DeadBytes += h.Total()
		q.ring.ReleaseDead(h)
	} else {
		q.ring.Release(uint64(h.Total()))
	}
	q.want, q.recs = q.want[h.Total():], q.recs[1:]
}

// check compares the ring with the queue.
func (q *queue) check() {
	seen := map[chunk.Ref]bool{}
	for _, c := range q.ring.Chunks() {
		require.NotZero(q.t, c)
		seen[c] = true
	}
	require.Len(q.t, seen, q.ring.Held(), "I2: chunks that it holds")
	if q.ring.borrowed {
		require.LessOrEqual(q.t, q.ring.Size, uint64(q.ring.Held())<<testShift, "I1")
	}
	var has Counts
	pos := q.ring.Tail
	for _, want := range q.recs {
		h, ok := q.ring.Header(pos)
		require.True(q.t, ok)
		require.Equal(q.t, want, h)
		has.Count(1, h.Total(), false)
		pos = (pos + uint64(h.Total())) & q.ring.Mask
	}
	require.Equal(q.t, q.ring.Head(), pos)
	require.Equal(q.t, has, q.ring.Counts)
	got, ok := q.ring.Read(nil, q.ring.Tail, int(q.ring.Size))
	require.True(q.t, ok)
	require.True(q.t, bytes.Equal(q.want, got), "it holds other bytes than were appended")
}

// A ring is a byte queue, whatever is done to it and however many chunks it may have.
func TestRing_IsAByteQueue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	p := newPool(t)
	q, other := newQueue(t, p, rnd), newQueue(t, p, rnd)
	full, borrowed, crossing, copied, limit := 0, 0, 0, 0, 3
	for range 30_000 {
		if rnd.IntN(100) == 0 {
			limit = 1 + rnd.IntN(6)
		}
		n := 3 + rnd.IntN(120)
		if left := int(q.room(limit) - q.ring.Size); rnd.IntN(4) == 0 && left >= 3 && left < 1<<15 {
			n = left // to the last byte
		}
		switch x := rnd.IntN(100); {
		case x == 0:
			q.ring.Reset()
			q.want, q.recs = nil, nil
		case x < 10 && len(q.recs) > 0: // the oldest moves to the other ring
			h, pos := q.recs[0], q.ring.Tail
			require.NoError(t, other.ring.Extend(uint64(h.Total()), 100))
			other.ring.CopyFrom(&q.ring, pos, h.Total())
			other.note(bytes.Clone(q.want[:h.Total()]))
			q.release()
			other.check()
			copied++
			for len(other.want) > 2000 {
				other.release()
			}
		case x < 60 && q.ring.Fits(n, limit):
			crosses := len(q.ring.Run(q.ring.Head())) < n
			q.append(n, limit)
			if crosses {
				crossing++
			}
			if q.ring.Size == q.room(limit) {
				full++
			}
		case len(q.recs) > 0:
			q.release()
		default:
			q.ring.Trim()
			require.Zero(t, q.ring.Held())
		}
		if q.ring.borrowed {
			borrowed++
		}
		q.check()
		require.LessOrEqual(t, q.ring.Held(), 7, "more chunks than it may have, and the head's")
	}
	for what, n := range map[string]int{
		"full": full, "with a borrowed chunk": borrowed, "over a chunk's end": crossing,
		"moved": copied,
	} {
		require.Greater(t, n, 500, what)
	}
}

// With a limit of n chunks, n chunks of bytes are live at once: the head borrows the
// chunk of the tail, and the ring holds no more than n.
func TestRing_IsFullToTheLastByte(t *testing.T) {
	for limit := 1; limit <= 5; limit++ {
		q := newQueue(t, newPool(t), rand.New(rand.NewPCG(3, 4)))
		q.append(100, limit)
		for q.ring.Fits(50, limit) {
			q.append(50, limit)
		}
		q.release() // now the tail is in the middle of a chunk
		for q.ring.Fits(50, limit) {
			q.append(50, limit)
		}
		q.append(int(q.room(limit)-q.ring.Size), limit)
		require.Equal(t, uint64(limit)<<testShift, q.ring.Size)
		require.Equal(t, limit, q.ring.Held())
		require.True(t, q.ring.borrowed)
		require.False(t, q.ring.Fits(1, limit))
		require.Zero(t, q.ring.Left())
		q.check()
		for len(q.recs) > 0 {
			q.release()
			q.check()
		}
	}
}

// A reader that comes too late finds no chunk, and is told so.
func TestRing_RunOfAnEmptyRingIsNil(t *testing.T) {
	q := newQueue(t, newPool(t), rand.New(rand.NewPCG(5, 6)))
	for _, what := range []string{"new", "reset", "closed"} {
		for _, pos := range []uint64{0, 1, 255, 256, 1 << 15, 1<<36 - 1} {
			require.Nil(t, q.ring.Run(pos), what)
			_, ok := q.ring.Read(nil, pos, 1)
			require.False(t, ok, what)
			require.False(t, q.ring.Equal(pos, []byte{0}), what)
			_, ok = q.ring.AnyHeader(pos)
			require.False(t, ok, what)
			q.ring.Prefetch(pos) // and does not fault
		}
		switch what {
		case "new":
			for range 20 {
				q.append(100, 10)
			}
			q.ring.Reset()
		case "reset":
			for range 20 {
				q.append(100, 10)
			}
			q.ring.Close()
		}
		q.want, q.recs = nil, nil
		q.check()
	}
}

// No header is believed that speaks of more bytes than follow it in the ring.
func TestRing_HeaderOfMoreThanTheRingHolds(t *testing.T) {
	q := newQueue(t, newPool(t), rand.New(rand.NewPCG(7, 8)))
	q.append(100, 3)
	const left = 50
	pos := q.ring.Head() - left
	for n, want := range map[int]bool{left - 10: true, left - 6: true, left - 5: false, 1000: false} {
		var buf [record.MaxHeader]byte
		q.ring.Write(pos, record.Plain.Put(&buf, record.Value, 3, n, record.Times{}))
		_, ok := q.ring.Header(pos)
		require.Equal(t, want, ok, "%d bytes", n)
		_, ok = q.ring.AnyHeader(pos)
		require.Equal(t, want, ok, "%d bytes", n)
	}
}

// A record for which the pool has too few chunks keeps none of them.
func TestRing_ExtendIsRefused(t *testing.T) {
	mem := heapMemory(t)
	maps, most := 0, 0
	inner := mem.Map
	mem.Map = func(n int) ([]byte, error) {
		if maps += n; most > 0 && maps > most {
			return nil, chunk.ErrNoMemory
		}
		return inner(n)
	}
	p := chunk.NewPool(mem, 1<<20, 1<<testShift, chunk.Never)
	var r Ring
	r.Init(p, testShift, 16)
	require.NoError(t, r.Extend(100, 1000))
	held, used := r.Held(), p.Used()
	most = 1 // no further map
	require.ErrorIs(t, r.Extend(2<<20, 1<<20), chunk.ErrNoMemory)
	require.Equal(t, held, r.Held())
	require.Equal(t, used, p.Used())
	require.NoError(t, r.Extend(1000, 1000))
}
