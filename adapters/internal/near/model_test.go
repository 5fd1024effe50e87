package near_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// modelStore is a connection with what it may find.
type modelStore struct {
	*store
	current map[string]string // value of the server by key and command, if it may be cached
	pending map[string]bool   // in flight; true: an invalidation came
}

// model runs random calls of stores on one cache. A hit has to be the value of the last
// Update since the last Delete. A miss is right at any time, since entries may be evicted.
type model struct {
	t      *testing.T
	rnd    *rand.Rand
	cache  *ringcache.Cache
	stores []*modelStore
	values int
	hits   int
}

var (
	modelKeys = []string{"", "k", "kG", "kGET", "key2"}
	modelCmds = []string{"GET", "ET", "STRLEN", "", "HGETf"}
)

func (m *model) newStore() *modelStore {
	return &modelStore{newStore(m.cache), map[string]string{}, map[string]bool{}}
}

// id names what is cached.
func id(key, cmd string) string { return key + "\x00" + cmd }

// step runs one call.
func (m *model) step() {
	i := m.rnd.IntN(len(m.stores))
	s := m.stores[i]
	key := modelKeys[m.rnd.IntN(len(modelKeys))]
	cmd := modelCmds[m.rnd.IntN(len(modelCmds))]
	switch p := m.rnd.IntN(1000); {
	case p < 500:
		m.flight(s, key, cmd)
	case p < 800:
		m.update(s, key, cmd)
	case p < 850:
		s.Cancel(key, cmd, errTest)
		delete(s.pending, id(key, cmd))
	case p < 920:
		s.Delete([]message{text(key)})
		s.forget(func(k string) bool { return k == key })
	case p < 925:
		s.Delete(nil)
		s.forget(func(string) bool { return true })
	case p < 935:
		s.Close(errTest)
		m.stores[i] = m.newStore()
	case p < 945:
		m.evict()
	}
}

func (m *model) flight(s *modelStore, key, cmd string) {
	_, pending := s.pending[id(key, cmd)]
	want, cached := s.current[id(key, cmd)]
	msg, entry := s.Flight(key, cmd, hour, time.Now())
	switch got, err := msg.ToString(); {
	case entry != nil:
		require.True(m.t, pending, "joined what is not in flight")
	case msg.CachePXAT() >= 0:
		m.hits++
		require.NoError(m.t, err)
		require.True(m.t, cached, "%q %q: found what was invalidated: %q", key, cmd, got)
		require.Equal(m.t, want, got)
	default:
		require.False(m.t, pending, "did not join")
		s.pending[id(key, cmd)] = false
		delete(s.current, id(key, cmd))
	}
}

func (m *model) update(s *modelStore, key, cmd string) {
	m.values++
	value := fmt.Sprint(key, cmd, m.values)
	invalidated, pending := s.pending[id(key, cmd)]
	at := s.Update(key, cmd, text(value))
	require.Equal(m.t, pending, at != 0)
	if pending && !invalidated {
		s.current[id(key, cmd)] = value
	}
	delete(s.pending, id(key, cmd))
}

// forget is what an invalidation of those keys means.
func (s *modelStore) forget(is func(key string) bool) {
	for _, key := range modelKeys {
		for _, cmd := range modelCmds {
			if !is(key) {
				continue
			}
			delete(s.current, id(key, cmd))
			if _, ok := s.pending[id(key, cmd)]; ok {
				s.pending[id(key, cmd)] = true
			}
		}
	}
}

// evict removes an entry as the cache may do at any time.
func (m *model) evict() {
	n := m.rnd.IntN(m.cache.Len() + 1)
	for k := range m.cache.Keys() {
		if n--; n < 0 {
			m.cache.Del(bytes.Clone(k))
			return
		}
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), cache: newCache(t)}
			for range 3 {
				m.stores = append(m.stores, m.newStore())
			}
			for range 20_000 {
				m.step()
			}
			require.Greater(t, m.hits, 500)
		})
	}
}
