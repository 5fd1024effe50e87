package store

import "sync"

var syncmapInfo = Info{
	Name: "sync.Map",
	Kind: &syncmapStore{},
	New:  func(Config) (Store, error) { return &syncmapStore{}, nil },
}

type syncmapStore struct{ m sync.Map }

func (s *syncmapStore) Set(k, v []byte) error {
	s.m.Store(string(k), clone(v))
	return nil
}

func (s *syncmapStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.m.Load(asString(k))
	if !ok {
		return dst, false
	}
	return append(dst, v.([]byte)...), true
}

func (s *syncmapStore) Del(k []byte) { s.m.Delete(asString(k)) }

func (s *syncmapStore) Close() error {
	s.m.Clear()
	return nil
}
