package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/ringcache/ringcache"
)

const users = 50_000

// serve answers requests through a cache in a file, reports how that went, and continues
// until it is killed.
func serve(cfg config, out io.Writer) error {
	start := time.Now()
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 64 << 20,
		File:     cfg.path(),
	})
	if err != nil {
		return err
	}
	opened := time.Since(start)
	var stats ringcache.Stats
	cache.UpdateStats(&stats)

	s := &service{cache: cache, delay: cfg.delay}
	// A few hundred users make half of the requests.
	zipf := rand.NewZipf(rand.New(rand.NewPCG(uint64(start.UnixNano()), 0)), 1.1, 10, users-1)
	var thousand time.Duration
	for range cfg.requests {
		s.profile(zipf.Uint64())
		if s.hits == 1000 && thousand == 0 {
			thousand = time.Since(start)
		}
	}
	fmt.Fprintf(out, "%d entries recovered in %v; %.1f %% hits; 1,000 hits after %v\n",
		stats.File.RecoveredEntries, opened.Round(time.Millisecond),
		100*float64(s.hits)/float64(cfg.requests), thousand.Round(time.Millisecond))
	for { // until it is killed
		s.profile(zipf.Uint64())
	}
}

// service reads profiles from a slow source, through its cache.
type service struct {
	cache *ringcache.Cache
	delay time.Duration
	hits  int
	buf   []byte
}

// profile returns the profile of a user, valid until the next call.
func (s *service) profile(user uint64) []byte {
	key := binary.BigEndian.AppendUint64(nil, user)
	var ok bool
	if s.buf, ok = s.cache.HasGet(s.buf[:0], key); ok {
		s.hits++
		return s.buf
	}
	time.Sleep(s.delay) // the source
	s.buf = fmt.Appendf(s.buf[:0], `{"user":%d,"name":"user %d","plan":"free"}`, user, user)
	_ = s.cache.Set(key, s.buf) // a profile that is not stored is read again next time
	return s.buf
}
