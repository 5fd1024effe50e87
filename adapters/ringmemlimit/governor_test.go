package ringmemlimit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const mb = 1 << 20

// newGovernor returns one with a share of 0.8 that holds for ten seconds.
func newGovernor() *governor {
	return &governor{share: 0.8, floor: 32 * mb, ceiling: 4 << 40, hold: 10 * time.Second}
}

// full is a reading under a limit of 1,000 MB, with a cache that holds all that it may.
func full(bound, rest int64) reading {
	return reading{
		levels: []level{{1000 * mb, (bound + rest) * mb}}, heap: rest / 2 * mb,
		held: bound * mb, bound: bound * mb,
	}
}

func TestGovernor_TakesTheRoomAtFirst(t *testing.T) {
	p := newGovernor().begin(time.Time{}, full(64, 100))
	require.EqualValues(t, 700*mb, p.bound)
	require.EqualValues(t, 700*mb, p.room)
	require.EqualValues(t, 100*mb, p.rest)
	require.EqualValues(t, 164*mb, p.used)
}

func TestGovernor_Rest(t *testing.T) {
	g := newGovernor()
	r := full(500, 100)
	r.held = 100 * mb // it is not full yet
	r.levels[0].used = 200 * mb
	require.EqualValues(t, 700*mb, g.weigh(r).room)

	// What the cache holds is not in use here: the pages of its file are another cgroup's.
	r = full(500, 100)
	r.levels[0].used = 100 * mb
	require.EqualValues(t, 750*mb, g.weigh(r).room, "beside the heap of 50 MB")
}

func TestGovernor_TightestLevel(t *testing.T) {
	g := newGovernor()
	r := full(500, 100)
	r.levels = append(r.levels, level{2000 * mb, 1500 * mb}, level{3000 * mb, 2000 * mb})
	require.EqualValues(t, 600*mb, g.weigh(r).room, "1,600 - (1,500 - 500)")
	require.EqualValues(t, 2000*mb, g.weigh(r).limit)
}

func TestGovernor_ShrinksAtOnceAndGrowsAfterAWhile(t *testing.T) {
	g, now := newGovernor(), time.Time{}
	bound := g.begin(now, full(64, 100)).bound / mb
	next := func(seconds int, rest int64) int64 {
		now = now.Add(time.Duration(seconds) * time.Second)
		bound = g.next(now, full(bound, rest)).bound / mb
		return bound
	}
	require.EqualValues(t, 700, next(1, 130), "less than the hysteresis of 1000/32 MB")
	require.EqualValues(t, 668, next(1, 132))
	require.EqualValues(t, 300, next(1, 500))
	for range 9 {
		require.EqualValues(t, 300, next(1, 100))
	}
	require.EqualValues(t, 300, next(1, 500), "a peak")
	for range 9 {
		require.EqualValues(t, 300, next(1, 290), "the peak was less than ten seconds ago")
	}
	for range 11 {
		next(1, 290)
	}
	require.EqualValues(t, 510, bound, "it was twenty seconds ago")
	for range 40 {
		require.EqualValues(t, 510, next(1, 260), "less than the hysteresis")
	}
}

func TestGovernor_FloorAndCeiling(t *testing.T) {
	g := newGovernor()
	g.floor, g.ceiling = 200*mb, 300*mb
	require.EqualValues(t, 300*mb, g.begin(time.Time{}, full(64, 100)).bound)
	require.EqualValues(t, 200*mb, g.next(time.Time{}, full(300, 900)).bound)
	require.EqualValues(t, 200*mb, g.begin(time.Time{}, full(300, 900)).bound)
}

func TestGovernor_LimitChanges(t *testing.T) {
	g, r := newGovernor(), full(700, 100)
	g.begin(time.Time{}, r)
	r.levels[0].limit = 500 * mb
	require.EqualValues(t, 300*mb, g.next(time.Time{}, r).bound, "at once")
	r = full(300, 100)
	r.levels[0].limit = 2000 * mb
	p := g.next(time.Time{}, r)
	for s := 1; p.bound == 300*mb; s++ {
		require.Less(t, s, 22)
		p = g.next(time.Time{}.Add(time.Duration(s)*time.Second), r)
	}
	require.EqualValues(t, 1500*mb, p.bound)
}

func TestGovernor_HeapLimit(t *testing.T) {
	g, r := newGovernor(), full(700, 100)
	p := g.begin(time.Time{}, r)
	require.EqualValues(t, (900-700-50)*mb, g.heapLimit(p, 50*mb, 700*mb), "50 MB are others'")
	require.EqualValues(t, (900-50)*mb, g.heapLimit(p, 50*mb, 0))
	require.EqualValues(t, p.limit/16, g.heapLimit(p, 50*mb, 900*mb), "never nothing")
}

// The rest goes up and down at random. The cache is never larger than there was room for at the
// last reading, and never smaller than there was room for all the time before, but for the
// hysteresis.
func TestGovernor_Random(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		g, now, rest := newGovernor(), time.Time{}, int64(100)
		bound := g.begin(now, full(64, rest)).bound / mb
		rooms, times, changes := []int64{800 - rest}, []time.Time{now}, 0
		for range 3000 {
			switch random.IntN(20) {
			case 0:
				rest = random.Int64N(700)
			case 1:
				rest = 100
			default:
				rest = max(0, min(rest+random.Int64N(21)-10, 700))
			}
			now = now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
			rooms, times = append(rooms, 800-rest), append(times, now)
			was := bound
			bound = g.next(now, full(bound, rest)).bound / mb
			if bound != was {
				changes++
			}
			least := int64(1 << 60)
			for i := len(times) - 1; i >= 0 && now.Sub(times[i]) <= 2*g.hold+4*time.Second; i-- {
				least = min(least, rooms[i])
			}
			const step = 1000/stepShare + 1
			require.LessOrEqual(t, bound, 800-rest+step)
			require.GreaterOrEqual(t, bound, least-step)
		}
		require.Greater(t, changes, 20)
		require.Less(t, changes, 1000)
	}
}
