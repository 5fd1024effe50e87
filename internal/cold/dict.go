package cold

import (
	"errors"
	"slices"

	"github.com/ringcache/ringcache/internal/dictfile"
)

// Dictionary is a dictionary and a compressor that uses it.
type Dictionary struct {
	bytes  []byte
	values ValueCompressor
}

// restore opens the dictionaries that another process has left. Values compressed with one that
// cannot be opened are discarded later, and so are all values that another Compressor may have
// compressed (Recovers).
func (s *Compression) restore(dicts []string) {
	for i, d := range dicts {
		if number := 1 + i; d != "" && number < Dicts {
			opened, err := Guarded(func() (*Dictionary, error) { return s.Open([]byte(d)) })
			if err == nil {
				s.add(uint8(number), opened)
			}
		}
	}
}

// add adds a dictionary. Numbers are never used again.
func (s *Compression) add(number uint8, d *Dictionary) {
	s.Dicts[number].Store(d)
	if number >= s.next {
		s.Dict, s.built, s.next = number, true, number+1
	}
}

// TakeOver makes the file of dictionaries this Compressor's, once the cache has no value left that
// another one has packed. The next process can then recover what is packed from now on.
func (s *Compression) TakeOver() error {
	if !s.Foreign {
		return nil
	}
	s.Foreign = false
	return s.write(nil)
}

// saveDicts writes the dictionaries and one more to the file, if the cache has one.
func (s *Compression) saveDicts(number uint8, added *Dictionary) error {
	all := make([]string, Dicts-1)
	for i := range all {
		if d := s.Dicts[1+i].Load(); d != nil {
			all[i] = string(d.bytes)
		}
	}
	all[number-1] = string(added.bytes)
	return s.write(all)
}

// write writes the file of dictionaries, if the cache has one. Once the cache is closed, the file
// may be in use by another process.
func (s *Compression) write(all []string) error {
	if s.File == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isEnded() {
		return errors.New("compression has ended")
	}
	return dictfile.Write(s.File, s.ID, all)
}

// Renew makes a dictionary if one is due.
func (s *Compression) Renew() {
	if s.Samples.Enough() && !s.isEnded() {
		if err := s.renew(); err != nil {
			s.Counts.Failed.Add(1)
		}
	}
}

// renew makes a dictionary from the samples.
func (s *Compression) renew() error {
	samples := s.Samples.values
	s.Samples, s.built, s.Ratio, s.Best = Samples{}, true, Ratio{}, 0
	d, err := Guarded(func() (*Dictionary, error) {
		bytes := s.By.BuildDict(samples)
		switch {
		case len(bytes) == 0:
			return nil, nil
		case len(bytes) > MostDict:
			return nil, errors.New("the dictionary is too long")
		}
		return s.Open(bytes)
	})
	if err != nil {
		return err
	}
	if d == nil {
		s.Dict = 0 // the Compressor wants none
		return nil
	}
	if err := s.saveDicts(s.next, d); err != nil { // before the first value is packed with it
		return err
	}
	s.add(s.next, d)
	return nil
}

// MostDict is the length of the longest dictionary in bytes. Dictionaries do not count towards
// MaxBytes.
const MostDict = 1 << 20

// ErrNoValueCompressor says that WithDict has returned neither a ValueCompressor nor an error.
var ErrNoValueCompressor = errors.New("WithDict returned no ValueCompressor")

// Open returns the dictionary with these bytes, ready for use. It keeps a copy for the file, since
// the Compressor may change its own.
func (s *Compression) Open(bytes []byte) (*Dictionary, error) {
	kept := slices.Clone(bytes)
	values, err := s.By.WithDict(bytes)
	if err == nil && values == nil {
		err = ErrNoValueCompressor
	}
	return &Dictionary{kept, values}, err
}
