package store

import "sync"

var rwmapInfo = Info{
	Name: "map+RWMutex",
	Kind: &rwmapStore{},
	New: func(c Config) (Store, error) {
		return &rwmapStore{m: make(map[string][]byte, c.room())}, nil
	},
}

type rwmapStore struct {
	mu sync.RWMutex
	m  map[string][]byte
}

func (s *rwmapStore) Set(k, v []byte) error {
	c := clone(v)
	s.mu.Lock()
	s.m[string(k)] = c
	s.mu.Unlock()
	return nil
}

func (s *rwmapStore) Get(dst, k []byte) ([]byte, bool) {
	s.mu.RLock()
	v, ok := s.m[string(k)]
	s.mu.RUnlock()
	return append(dst, v...), ok // stored values never change, so the copy needs no lock
}

func (s *rwmapStore) Statistics() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.m)
}

func (s *rwmapStore) Del(k []byte) {
	s.mu.Lock()
	delete(s.m, string(k))
	s.mu.Unlock()
}

func (s *rwmapStore) Close() error {
	s.mu.Lock()
	s.m = nil
	s.mu.Unlock()
	return nil
}
