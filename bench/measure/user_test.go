package measure

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/store"
)

// teller is a store whose values have a version of one's choice. It notes the ids that
// it is asked for.
type teller struct {
	oracle
	version uint64
	asked   []uint64
}

func (s *teller) Get(dst, k []byte) ([]byte, bool) {
	id := binary.LittleEndian.Uint64(k[8:])
	s.asked = append(s.asked, id)
	s.format.Value(s.val, id, s.version)
	return append(dst, s.val...), true
}

func find(t *testing.T, name string) *Load {
	t.Helper()
	l, err := Find(name)
	require.NoError(t, err)
	return l
}

func workerOf(l *Load, s store.Store) *worker {
	b := &bench{load: l, scale: tinyScale, entries: l.entries(tinyScale)}
	b.start(1)
	b.workers[0].store = s
	return b.workers[0]
}

// TestValuesLeadDependentGets has values that say where to go on. Were a key known
// before the last value is there, a store could look for both at once.
func TestValuesLeadDependentGets(t *testing.T) {
	for _, name := range []string{"dep-uniform", "dep-small-uniform", "ttl-dep-uniform"} {
		for _, version := range []uint64{0, 7} {
			l := find(t, name)
			s := &teller{oracle: oracle{format: l.Format, val: make([]byte, l.Format.ValueSize)}}
			s.version = version
			w := workerOf(l, s)
			require.NoError(t, w.step())
			want := []uint64{w.ids[0]} // of the first Get, which follows none
			for i := 1; i < batch; i++ {
				want = append(want, w.ids[(uint64(i)+version)%batch])
			}
			require.Equal(t, want, s.asked, name)
			require.NoError(t, w.step())
			require.Equal(t, w.ids[version], s.asked[batch], "the next step goes on from the last value")
			require.Equal(t, w.gets, w.hits)
		}
	}
}

// kept is a store that keeps the results of its Gets apart.
type kept struct {
	oracle
	dsts [][]byte
}

func (s *kept) Get(dst, k []byte) ([]byte, bool) {
	s.dsts = append(s.dsts, dst)
	return s.oracle.Get(dst, k)
}

func TestGetNilBringsNoBuffer(t *testing.T) {
	l := find(t, "get-nil")
	s := &kept{oracle: oracle{format: l.Format, val: make([]byte, l.Format.ValueSize)}}
	w := workerOf(l, s)
	require.NoError(t, w.step())
	require.Len(t, s.dsts, batch)
	for _, dst := range s.dsts {
		require.Nil(t, dst)
	}
	require.NotNil(t, w.dst, "what comes after has a buffer again")
}

// TestTTLReachesTheStore wants the loads of its group, and no others, to ask for it.
func TestTTLReachesTheStore(t *testing.T) {
	for _, l := range Loads {
		var got store.Config
		info := store.Info{New: func(c store.Config) (store.Store, error) {
			got = c
			return new(liar), nil
		}}
		b := &bench{load: l, info: info, scale: tinyScale, entries: l.entries(tinyScale)}
		require.NoError(t, b.open())
		want := time.Duration(0)
		if l.Group == TTL {
			want = time.Hour
		}
		require.Equal(t, want, got.TTL, l.Name)
	}
}
