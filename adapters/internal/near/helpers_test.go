package near_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/near"
)

const (
	hour      = time.Hour
	cacheSize = 32 << 20
	patience  = 10 * time.Second // what takes longer fails
)

var ctx = context.Background()

// newCache returns a small cache that is closed at the end of the test.
func newCache(t testing.TB) *ringcache.Cache {
	if strconv.IntSize == 32 {
		runtime.GC() // the addresses of closed caches are given back when they are collected
	}
	cache := ringcache.New(cacheSize)
	t.Cleanup(func() { cache.Close() })
	return cache
}

// message is a reply: a kind as in RESP ('$' is a string, '_' no value, '-' an error), and
// when it expires (0: never).
type message struct {
	pxat int64
	typ  byte
	text string
}

func reply(typ byte, text string, pxat int64) message { return message{pxat, typ, text} }

func text(s string) message { return reply('$', s, 0) }

func (m *message) CacheSize() int { return 8 + len(m.text) }

func (m *message) CacheMarshal(dst []byte) []byte {
	head := binary.LittleEndian.AppendUint64(nil, uint64(m.pxat))
	return append(append(append(dst, head[:7]...), m.typ), m.text...)
}

func (m *message) CacheUnmarshalView(src []byte) error {
	if len(src) < 8 {
		return errors.New("too short")
	}
	var head [8]byte
	copy(head[:], src[:7])
	*m = message{int64(binary.LittleEndian.Uint64(head[:])), src[7], string(src[8:])}
	return nil
}

func (m *message) CachePXAT() int64 {
	if m.pxat == 0 {
		return -1
	}
	return m.pxat
}

func (m *message) IsCacheHit() bool { return m.pxat != 0 }

func (m *message) IsNil() bool { return m.typ == '_' }

func (m *message) Error() error {
	switch m.typ {
	case '_':
		return errors.New("no value")
	case '-':
		return errors.New(m.text)
	}
	return nil
}

func (m *message) ToString() (string, error) {
	if m.typ != '$' {
		return "", errors.New("not a string")
	}
	return m.text, m.Error()
}

// entry is what a reader waits for.
type entry interface {
	Wait(ctx context.Context) (message, error)
}

// store is what an adapter makes of a Store.
type store struct{ near.Store[message, *message] }

func (s *store) Flight(key, cmd string, ttl time.Duration, now time.Time) (m message, _ entry) {
	reply, under := s.Store.Flight(key, cmd, ttl, now)
	if under != nil {
		return m, under
	}
	if reply != nil {
		if err := m.CacheUnmarshalView(reply); err != nil {
			panic(err)
		}
	}
	return m, nil
}

// newStore returns the store of one more connection.
func newStore(cache *ringcache.Cache) *store {
	s := new(store)
	s.Init(cache)
	return s
}
