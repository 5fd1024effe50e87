package ringfiber

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringcache/ringcache"
)

// Options are the settings of a [Storage]. The zero value of each field is its default.
type Options struct {
	// Prefix is prepended to every key, so that several middlewares, and other code, can share a
	// cache. No prefix may begin with another one: end each with the same byte, which occurs
	// nowhere else in it, as in "session:". Without a prefix, Reset empties the cache or namespace.
	Prefix string

	// Responses must be true for fiber's cache middleware, and false for all others. That
	// middleware stores a response in two entries, and may fail the request if it finds the first
	// without the second. A cache may drop either, so with Responses the storage returns the first
	// only if it also has the second, and stores responses without a body. A response that is too
	// large for the cache is served but not stored, instead of failing the request.
	Responses bool
}

// Storage is a fiber.Storage in a [ringcache.Cache], which may drop any entry at any time. [New]
// returns a Storage. It is safe for concurrent use and starts no goroutine. Contexts are ignored,
// except by ResetWithContext with a prefix.
type Storage struct {
	cache     *ringcache.Cache
	prefix    string
	responses bool
	found     handover
}

// The cache middleware appends these to the key of a response. Its body, and the names of the
// headers that it depends on, are separate entries.
const (
	bodySuffix = "_body"
	varySuffix = "|vary"
)

// bodySpare is added to the time to live of a body, which is set before its response and would
// expire first.
const bodySpare = time.Second

// keyRoom is the length up to which keys are on the stack.
const keyRoom = 256

// New returns a storage in cache. The caller still owns cache, may share it with other code, and
// closes it. New panics if cache is nil.
func New(cache *ringcache.Cache, o Options) *Storage {
	if cache == nil {
		panic("ringfiber: make storage: cache is nil")
	}
	return &Storage{cache: cache, prefix: o.Prefix, responses: o.Responses}
}

// Get returns the value of key, or nil if it is not found. The bytes are a copy that the caller
// owns. The error is always nil.
func (s *Storage) Get(key string) ([]byte, error) {
	if key == "" {
		return nil, nil
	}
	if s.responses {
		return s.getResponse(key), nil
	}
	return s.get(key), nil
}

// get returns the value of key, or nil if there is none.
func (s *Storage) get(key string) []byte {
	var room [keyRoom]byte
	val, ok := s.cache.HasGet(nil, s.appendKey(room[:0], key))
	if ok && val == nil {
		return []byte{}
	}
	return val
}

// getMore is like get, but does not count as a lookup: the entries of a response count as one. An
// Update that changes nothing is a read that Stats does not count.
func (s *Storage) getMore(key string) (val []byte) {
	var room [keyRoom]byte
	_ = s.cache.Update(s.appendKey(room[:0], key), func(e *ringcache.Entry[[]byte]) {
		if e.Present {
			val = append([]byte{}, e.Value...)
		}
	})
	return val
}

// getResponse is like get, but returns a response only if its body is there too. The middleware
// gets the body afterwards.
func (s *Storage) getResponse(key string) []byte {
	switch {
	case strings.HasSuffix(key, varySuffix):
		return s.getMore(key)
	case strings.HasSuffix(key, bodySuffix):
		if body, ok := s.found.take(key); ok {
			return body
		}
		return s.getMore(key)
	}
	response := s.get(key)
	if response == nil {
		return nil
	}
	bodyKey := key + bodySuffix
	body := s.getMore(bodyKey)
	if body == nil {
		return nil
	}
	s.found.put(bodyKey, body)
	return response
}

// GetWithContext is Get.
func (s *Storage) GetWithContext(_ context.Context, key string) ([]byte, error) {
	return s.Get(key)
}

// Set stores a copy of val under key with the time to live exp; 0 means none, whatever the cache's
// TTL is. With Responses, a body gets a second more. An entry may expire up to 100 ms early. With
// any other time below 100 ms, an older value is removed and nothing is stored. As fiber's
// interface requires, an empty key or value is ignored, except for the body of a response.
//
// Its errors are those of [ringcache.Cache.SetWithTTL], such as [ringcache.ErrTooLarge]; the key
// is then absent. See [Options].Responses for the cache middleware.
func (s *Storage) Set(key string, val []byte, exp time.Duration) error {
	body := s.responses && strings.HasSuffix(key, bodySuffix)
	if key == "" || len(val) == 0 && !body {
		return nil
	}
	if body && exp > 0 {
		exp = max(exp, exp+bodySpare) // the sum may be out of range
	}
	var room [keyRoom]byte
	err := s.cache.SetWithTTL(s.appendKey(room[:0], key), val, exp)
	if body {
		s.found.drop(key)
	}
	switch {
	case errors.Is(err, ringcache.ErrTTLTooShort),
		s.responses && errors.Is(err, ringcache.ErrTooLarge),
		s.responses && errors.Is(err, ringcache.ErrNoMemory):
		return nil // the key is absent now
	}
	return err
}

// SetWithContext is Set.
func (s *Storage) SetWithContext(
	_ context.Context, key string, val []byte, exp time.Duration,
) error {
	return s.Set(key, val, exp)
}

// Delete removes key, if it is present. The error is always nil.
func (s *Storage) Delete(key string) error {
	if key == "" {
		return nil
	}
	var room [keyRoom]byte
	s.cache.Del(s.appendKey(room[:0], key))
	s.found.drop(key)
	return nil
}

// DeleteWithContext is Delete.
func (s *Storage) DeleteWithContext(_ context.Context, key string) error {
	return s.Delete(key)
}

// Reset is ResetWithContext with the background context.
func (s *Storage) Reset() error { return s.ResetWithContext(context.Background()) }

// ResetWithContext removes all keys with the prefix of the storage; without a prefix it removes all
// entries of the cache, including those of other code. With a prefix it examines every key of the
// cache, and an entry that is set during the call may remain; if the context ends, it stops with an
// error that wraps the context's, and some keys may have been removed.
func (s *Storage) ResetWithContext(ctx context.Context) error {
	defer s.found.reset()
	if s.prefix == "" {
		s.cache.Reset()
		return nil
	}
	prefix := []byte(s.prefix)
	for k := range s.cache.Keys() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("ringfiber: reset storage: %w", err)
		}
		if bytes.HasPrefix(k, prefix) {
			s.cache.Del(k)
		}
	}
	return nil
}

// Close does nothing: the caller of New owns the cache. The error is always nil.
func (s *Storage) Close() error { return nil }

func (s *Storage) appendKey(dst []byte, key string) []byte {
	return append(append(dst, s.prefix...), key...)
}
