package ringscs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
)

// Options are the settings of a [Store]. The zero value of each field is its default.
type Options struct {
	// Prefix, such as "session:", is prepended to every key, so that several stores, and other
	// code, can share a cache. Other prefixes and other keys must not begin with it. Without a
	// prefix, All returns all of the cache's own entries as sessions, so it must not contain
	// others.
	Prefix string
}

// Store is an scs.Store in a [ringcache.Cache], and an scs.IterableStore with and without a
// context. The cache may drop any session at any time. [New] returns a Store. It is safe for
// concurrent use and starts no goroutine.
type Store struct {
	cache  *ringcache.Cache
	prefix string
}

// keyRoom is the length up to which keys are on the stack.
const keyRoom = 128

// New returns a store in cache. The caller still owns cache, may share it with other code, and
// closes it. New panics if cache is nil.
func New(cache *ringcache.Cache, o Options) *Store {
	if cache == nil {
		panic("ringscs: make store: cache is nil")
	}
	return &Store{cache: cache, prefix: o.Prefix}
}

// Find returns the data of the session with that token, and whether it was found. It is not found
// if it has expired, was deleted, or was dropped by the cache. The bytes are a copy that the caller
// owns. The error is always nil.
func (s *Store) Find(token string) (b []byte, found bool, err error) {
	var room [keyRoom]byte
	b, found = s.cache.HasGet(nil, s.appendKey(room[:0], token))
	return b, found, nil
}

// Commit stores a copy of a session's data until expiry, replacing older data. A session may expire
// up to 100 ms early, and one with less than 100 ms left is removed at once.
//
// It returns errors of [ringcache.Cache.SetWithTTL], such as [ringcache.ErrTooLarge] for
// a session above 1/16 of the cache. After an error the session is absent, its older data included.
func (s *Store) Commit(token string, b []byte, expiry time.Time) error {
	var room [keyRoom]byte
	k := s.appendKey(room[:0], token)
	left := time.Until(expiry)
	if left <= 0 { // to the cache, 0 means no expiry
		s.cache.Del(k)
		return nil
	}
	err := s.cache.SetWithTTL(k, b, left)
	if errors.Is(err, ringcache.ErrTTLTooShort) {
		return nil // it is absent now
	}
	return err
}

// Delete removes the session with that token, if there is one. The error is always nil.
func (s *Store) Delete(token string) error {
	var room [keyRoom]byte
	s.cache.Del(s.appendKey(room[:0], token))
	return nil
}

// All is AllCtx with the background context.
func (s *Store) All() (map[string][]byte, error) { return s.AllCtx(context.Background()) }

// AllCtx returns copies of the data of all sessions, by token, all on the Go heap at once. It
// visits and copies all of the cache's own entries. A session that is added, removed or changed
// during the call may or may not be included. An error wraps that of ctx; the map is then nil.
//
// The call does not count as a read when the cache decides what to evict.
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
