package store

import "github.com/maypok86/otter/v2"

var otterInfo = Info{
	Name:    "otter",
	Module:  "github.com/maypok86/otter/v2",
	Expires: true,
	Exact:   true,
	New: func(c Config) (Store, error) {
		o := &otter.Options[string, []byte]{
			MaximumWeight: uint64(c.MaxBytes),
			Weigher:       func(k string, v []byte) uint32 { return uint32(len(k) + len(v)) },
		}
		if c.Synchronous {
			o.Executor = func(fn func()) { fn() }
		} else {
			o.InitialCapacity = c.room() // it would make a replay's policy begin its counts earlier
		}
		if c.TTL > 0 {
			o.ExpiryCalculator = otter.ExpiryWriting[string, []byte](c.TTL)
		}
		cache, err := otter.New(o)
		if err != nil {
			return nil, err
		}
		return otterStore{cache}, nil
	},
}

type otterStore struct{ c *otter.Cache[string, []byte] }

func (s otterStore) Set(k, v []byte) error {
	s.c.Set(string(k), clone(v))
	return nil
}

func (s otterStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.c.GetIfPresent(asString(k))
	return append(dst, v...), ok
}

func (s otterStore) Look(k []byte, fn func(v []byte)) bool {
	v, ok := s.c.GetIfPresent(asString(k))
	if ok {
		fn(v)
	}
	return ok
}

func (s otterStore) Update(k []byte, fn func([]byte, bool) ([]byte, bool)) error {
	s.c.Compute(string(k), func(old []byte, ok bool) ([]byte, otter.ComputeOp) {
		v, set := fn(old, ok)
		if !set {
			return nil, otter.InvalidateOp
		}
		return clone(v), otter.WriteOp
	})
	return nil
}

func (s otterStore) Len() int { return s.c.EstimatedSize() }
func (s otterStore) Settle()  { s.c.CleanUp() }

func (s otterStore) Del(k []byte) { s.c.Invalidate(string(k)) }

func (s otterStore) Close() error {
	s.c.InvalidateAll()
	s.c.StopAllGoroutines()
	return nil
}
