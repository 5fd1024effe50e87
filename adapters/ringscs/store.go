package ringscs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
)

// Options are the settings of a [Store]. The zero value is the default of each.
type Options struct {
	// Prefix begins every key of the store, so that several stores, and other users, can share
	// a cache. It must not be the beginning of another's prefix: end it with a byte that occurs
	// nowhere else in one, as in "session:". Without one, All takes every entry of the cache
	// for a session, so the cache must have nothing else.
	Prefix string
}

// Store is a scs.Store in a [ringcache.Cache], and a scs.IterableStore with and without a
// context. The cache may drop any session at any time. A Store is made by [New], and safe for
// concurrent use. It starts no goroutine, and only All may take long enough for a context.
type Store struct {
	cache  *ringcache.Cache
	prefix string
}

// keyRoom is how long a key may be that is put together on the stack.
const keyRoom = 128

// New returns a store in cache. The cache stays the caller's: other users may share it, and who
// made it closes it. New panics if cache is nil.
func New(cache *ringcache.Cache, o Options) *Store {
	if cache == nil {
		panic("ringscs: make store: cache is nil")
	}
	return &Store{cache: cache, prefix: o.Prefix}
}

// Find returns the data of the session with that token, and whether it is there. It is not if
// it has expired or was deleted, and if the cache has dropped it. The bytes are a copy, and the
// caller's. The error is nil.
func (s *Store) Find(token string) (b []byte, found bool, err error) {
	var room [keyRoom]byte
	b, found = s.cache.HasGet(nil, s.appendKey(room[:0], token))
	return b, found, nil
}

// Commit stores a copy of a session's data until expiry, in place of older data. A session
// ends on time or up to 100 ms early, never late, so one with less than 100 ms left is removed
// at once.
//
// It returns the errors of [ringcache.Cache.SetWithTTL], such as [ringcache.ErrTooLarge] for
// more than a sixteenth of the cache. The session is gone then, its older data included.
func (s *Store) Commit(token string, b []byte, expiry time.Time) error {
	var room [keyRoom]byte
	k := s.appendKey(room[:0], token)
	left := time.Until(expiry)
	if left <= 0 { // to the cache, 0 is for ever
		s.cache.Del(k)
		return nil
	}
	err := s.cache.SetWithTTL(k, b, left)
	if errors.Is(err, ringcache.ErrTTLTooShort) {
		return nil // it is absent now
	}
	return err
}

// Delete removes the session with that token, if it is there. The error is nil.
func (s *Store) Delete(token string) error {
	var room [keyRoom]byte
	s.cache.Del(s.appendKey(room[:0], token))
	return nil
}

// All is AllCtx without an end to the context.
func (s *Store) All() (map[string][]byte, error) { return s.AllCtx(context.Background()) }

// AllCtx returns the data of all sessions, by token: copies, all on the Go heap at once. To
// find them it goes over the whole cache, and copies what else is in it too. A session that
// comes, goes or changes meanwhile may be there or not. If the context ends, the map is nil and
// the error that of the context.
//
// That a session is listed does not make it stay longer.
func (s *Store) AllCtx(ctx context.Context) (map[string][]byte, error) {
	sessions := map[string][]byte{}
	prefix := []byte(s.prefix)
	for k, b := range s.cache.All() {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("ringscs: list sessions: %w", err)
		}
		if token, ok := bytes.CutPrefix(k, prefix); ok {
			sessions[string(token)] = bytes.Clone(b)
		}
	}
	return sessions, nil
}

func (s *Store) appendKey(dst []byte, token string) []byte {
	return append(append(dst, s.prefix...), token...)
}
