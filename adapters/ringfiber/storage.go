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

// Options are the settings of a [Storage]. The zero value is the default of each.
type Options struct {
	// Prefix begins every key of the storage, so that several middlewares, and other users,
	// can share a cache. It must not be the beginning of another's prefix: end it with a byte
	// that occurs nowhere else in one, as in "session:". Without one, Reset empties the cache.
	Prefix string

	// Responses says that the storage is for fiber's cache middleware, and for nothing else.
	// The middleware keeps a response in two entries, and fails the request if it finds the
	// first without the second. A cache may drop either, so the storage then finds the first
	// only where it has both, and responses without a body are kept too. A response that is
	// too large for the cache is served and not kept, instead of failing the request.
	Responses bool
}

// Storage is a fiber.Storage in a [ringcache.Cache], which may drop any entry at any time. It
// is made by [New], and safe for concurrent use. It starts no goroutine, and never waits, so
// that only Reset looks at its context.
type Storage struct {
	cache     *ringcache.Cache
	prefix    string
	responses bool
	found     handover
}

// What the cache middleware puts behind the key of a response: bodies, and the names of the
// headers that the response depends on, are separate entries.
const (
	bodySuffix = "_body"
	varySuffix = "|vary"
)

// bodySpare is how much longer a body lives than the response that it belongs to. It is set
// first, and would expire first.
const bodySpare = time.Second

// keyRoom is how long a key may be that is put together on the stack.
const keyRoom = 256

// New returns a storage in cache. The cache stays the caller's: other users may share it, and
// who made it closes it. New panics if cache is nil.
func New(cache *ringcache.Cache, o Options) *Storage {
	if cache == nil {
		panic("ringfiber: make storage: cache is nil")
	}
	return &Storage{cache: cache, prefix: o.Prefix, responses: o.Responses}
}

// Get returns the value of key, or nil if key is not there: it was never set, or deleted, it
// has expired, or the cache has dropped it. The bytes are a copy, and the caller's. The error
// is nil.
func (s *Storage) Get(key string) ([]byte, error) {
	if key == "" {
		return nil, nil
	}
	if s.responses {
		return s.getResponse(key), nil
	}
	return s.get(key), nil
}

// get returns the value of key, and nil if it is not there.
func (s *Storage) get(key string) []byte {
	var room [keyRoom]byte
	val, ok := s.cache.HasGet(nil, s.appendKey(room[:0], key))
	if ok && val == nil {
		return []byte{}
	}
	return val
}

// getMore is get of a further entry of a response, which counts as one lookup.
func (s *Storage) getMore(key string) []byte {
	var room [keyRoom]byte
	val, ok := s.cache.HasGetUncounted(nil, s.appendKey(room[:0], key))
	if ok && val == nil {
		return []byte{}
	}
	return val
}

// getResponse is get of what the cache middleware keeps. The middleware gets a response first,
// and then its body, which has to be there.
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

// Set stores a copy of val under key, for exp at most; 0 is for ever, whatever the cache's
// TTL says. An entry expires on time or up to 100 ms early, never late, so one of less than
// 100 ms has expired at once: an older value is removed, and nothing is stored. As fiber asks
// for, an empty key or value is ignored, except for the empty body of a response.
//
// It returns the errors of [ringcache.Cache.SetWithTTL], such as [ringcache.ErrTooLarge]; an
// older value is gone then. See [Options].Responses for the cache middleware.
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

// Delete removes key, if it is there. The error is nil.
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

// Reset is ResetWithContext without an end to the context.
func (s *Storage) Reset() error { return s.ResetWithContext(context.Background()) }

// ResetWithContext removes all keys of the storage: those with its prefix, and without one all
// of the cache, whoever has set them. To find those with a prefix it looks at every key of the
// cache. What is set meanwhile may stay. If the context ends, so does the search, with the
// context's error; some keys are gone then.
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

// Close does nothing: the cache is of who made it. The error is nil.
func (s *Storage) Close() error { return nil }

func (s *Storage) appendKey(dst []byte, key string) []byte {
	return append(append(dst, s.prefix...), key...)
}
