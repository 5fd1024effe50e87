package ringgocache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eko/gocache/lib/v4/store"

	"github.com/ringcache/ringcache"
)

// Type is the type of store that GetType returns.
const Type = "ringcache"

// ErrKeyType is the error for a key that is not a string. gocache's own caches convert all keys to
// strings.
var ErrKeyType = errors.New("the key is not a string")

// ErrValueType is the error for a value that is neither a []byte nor a string.
var ErrValueType = errors.New("the value is neither a []byte nor a string")

// errNotFound is a store.NotFound. It is made once: misses do not allocate.
var errNotFound = store.NotFoundWithCause(errors.New("ringgocache: get value: not in the cache"))

// keyRoom is the length up to which a key is copied to the stack, and recordRoom that of a
// value with its tags.
const (
	keyRoom    = 120
	recordRoom = 1024
)

// Store is a store.StoreInterface in a [ringcache.Cache], which may drop any value when it is full.
// [New] returns a Store. It is safe for concurrent use. Its methods ignore their contexts.
type Store struct {
	values  *ringcache.Cache
	options *store.Options
	tags    tags
}

var _ store.StoreInterface = (*Store)(nil)

// New returns a store of all entries in cache, which should be a namespace ([ringcache.Cache]'s
// Namespace) if anything else uses it. Use only one Store for it: a Store does not find values that
// another one set with tags. The options apply to each Set that does not override them. A store
// uses 512 KB of the Go heap for the versions of tags. The caller still owns the cache and closes
// it. New panics if cache is nil.
func New(cache *ringcache.Cache, options ...store.Option) *Store {
	if cache == nil {
		panic("ringgocache: make store: cache is nil")
	}
	return &Store{values: cache, options: store.ApplyOptions(options...), tags: newTags()}
}

// Get returns a copy of the value of key, of the type that was set: []byte or string. The caller
// owns it. If there is no value, or one of its tags has been invalidated, the error is a
// [*store.NotFound]; for a key that is not a string it is [ErrKeyType].
func (s *Store) Get(_ context.Context, key any) (any, error) {
	value, _, err := s.get(key, false)
	return value, err
}

// GetWithTTL is like Get, and also returns the remaining time to live, 0 if the value does not
// expire.
func (s *Store) GetWithTTL(_ context.Context, key any) (any, time.Duration, error) {
	return s.get(key, true)
}

func (s *Store) get(key any, withTTL bool) (value any, ttl time.Duration, err error) {
	k, ok := key.(string)
	if !ok {
		return nil, 0, keyError(key)
	}
	var room [keyRoom]byte
	var rec []byte
	if withTTL {
		rec, ttl, ok = s.values.GetWithTTL(nil, append(room[:0], k...))
	} else {
		rec, ok = s.values.HasGet(nil, append(room[:0], k...))
	}
	if !ok {
		return nil, 0, errNotFound
	}
	data, isString, ok := s.tags.open(rec)
	switch {
	case !ok:
		return nil, 0, errNotFound
	case isString:
		return string(data), ttl, nil
	}
	return data, ttl, nil
}

// Set stores a copy of value, a []byte or a string, replacing an older value and its tags.
// The following options have an effect:
//
// WithExpiration sets the time to live; 0 means the TTL of the cache (Options.TTL). Any other time
// below 100 ms removes the key.
//
// WithTags sets the tags of the value, each of which needs 10 bytes.
//
// An error is [ErrKeyType], [ErrValueType] or an error of [ringcache.Cache.SetWithTTL], such as
// [ringcache.ErrTooLarge]. After an error of the cache the key is absent.
func (s *Store) Set(_ context.Context, key any, value any, options ...store.Option) error {
	k, ok := key.(string)
	if !ok {
		return keyError(key)
	}
	o := store.ApplyOptionsWithDefault(s.options, options...)
	var room [recordRoom]byte
	rec, ok := s.tags.appendRecord(room[:0], o.Tags, value)
	if !ok {
		return fmt.Errorf("ringgocache: set %q: value of type %T: %w", k, value, ErrValueType)
	}
	var keySpace [keyRoom]byte
	err := s.set(append(keySpace[:0], k...), rec, o.Expiration)
	if err != nil {
		return fmt.Errorf("ringgocache: set %q: %w", k, err)
	}
	return nil
}

func (s *Store) set(k, rec []byte, ttl time.Duration) error {
	if ttl == 0 {
		return s.values.Set(k, rec)
	}
	err := s.values.SetWithTTL(k, rec, ttl)
	if errors.Is(err, ringcache.ErrTTLTooShort) {
		return nil // the key is absent now
	}
	return err
}

// Delete removes the value of key. A missing key is not an error.
func (s *Store) Delete(_ context.Context, key any) error {
	k, ok := key.(string)
	if !ok {
		return keyError(key)
	}
	var room [keyRoom]byte
	s.values.Del(append(room[:0], k...))
	return nil
}

// Invalidate removes all values that were set with any of the tags given by
// store.WithInvalidateTags: after it has returned, none of them is found. For each tag it also
// invalidates about one in 65,536 others. A removed value still occupies memory. The error is
// always nil.
func (s *Store) Invalidate(_ context.Context, options ...store.InvalidateOption) error {
	for _, tag := range store.ApplyInvalidateOptions(options...).Tags {
		s.tags.invalidate(tag)
	}
	return nil
}

// Clear resets the cache of the store: in a namespace it removes all values, and nothing else. The
// error is always nil.
func (s *Store) Clear(context.Context) error {
	s.values.Reset()
	return nil
}

// GetType returns Type.
func (s *Store) GetType() string { return Type }

func keyError(key any) error {
	return fmt.Errorf("ringgocache: check key: type %T: %w", key, ErrKeyType)
}
