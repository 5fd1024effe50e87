package cold

import "errors"

// The file of the dictionaries has the key 0 and the Compressor's ID, and for each dictionary its
// number and its bytes.
const (
	Magic    = "ringdict" // the first 8 bytes of the file
	idNumber = 0

	// MostID is the length of the longest ID.
	MostID = 64
)

// fileKey returns the key of a dictionary, or of the ID.
func fileKey(number uint8, bytes string) string { return string([]byte{number}) + bytes }

// restore opens the dictionaries that another process has left. Values compressed with one that
// cannot be opened are discarded later, and so are all values that another Compressor may have
// compressed (Recovers).
func (s *Compression) restore(found map[string]uint64) {
	if s.foreign = found[fileKey(idNumber, s.ID)] == 0; s.foreign {
		return
	}
	for key := range found {
		if len(key) < 2 || key[0] == idNumber || key[0] >= Dicts {
			continue
		}
		s.next = max(s.next, key[0]+1) // also if it cannot be opened
		values, err := Guarded(func() (ValueCompressor, error) { return s.Open([]byte(key[1:])) })
		if err != nil {
			s.Counts.Failed.Add(1)
			continue
		}
		s.add(key[0], values)
	}
}

// add adds a dictionary. Numbers are never used again.
func (s *Compression) add(number uint8, values ValueCompressor) {
	s.Dicts[number].Store(&values)
	s.Dict, s.next, s.built = max(s.Dict, number), max(s.next, number+1), true
}

// TakeOver makes the file of dictionaries this Compressor's, once the cache has no value left that
// another one has packed. The next process can then recover what is packed from now on. Without a
// Compressor, s is nil.
func (s *Compression) TakeOver() error {
	if s == nil || !s.foreign {
		return nil
	}
	s.foreign = false
	if err := s.File.Clear(); err != nil {
		return err
	}
	return s.File.Set(fileKey(idNumber, s.ID), 1)
}

// Renew makes a dictionary if one is due.
func (s *Compression) Renew() {
	if s.Samples.Enough() && s.life.Err() == nil {
		if err := s.renew(); err != nil {
			s.Counts.Failed.Add(1)
		}
	}
}

// renew makes a dictionary from the samples.
func (s *Compression) renew() error {
	samples := s.Samples.values
	s.Samples, s.built, s.Ratio, s.Best = Samples{}, true, Ratio{}, 0
	key := ""
	values, err := Guarded(func() (ValueCompressor, error) {
		bytes := s.By.BuildDict(samples)
		switch {
		case len(bytes) == 0:
			return nil, nil
		case len(bytes) > MostDict:
			return nil, errors.New("the dictionary is too long")
		}
		key = fileKey(s.next, string(bytes)) // first: the Compressor may change its own
		return s.Open(bytes)
	})
	if err != nil {
		return err
	}
	if values == nil {
		s.Dict = 0 // the Compressor wants none
		return nil
	}
	if err = s.File.Set(key, 1); err != nil { // before the first value is packed with it
		return errors.Join(err, s.File.Set(key, 0)) // Close must not add it: its number has another use
	}
	s.add(s.next, values)
	return nil
}

// MostDict is the length of the longest dictionary in bytes. Dictionaries do not count towards
// MaxBytes.
const MostDict = 1 << 20

// ErrNoValueCompressor says that WithDict has returned neither a ValueCompressor nor an error.
var ErrNoValueCompressor = errors.New("WithDict returned no ValueCompressor")

// Open returns a compressor that uses a dictionary.
func (s *Compression) Open(dict []byte) (ValueCompressor, error) {
	values, err := s.By.WithDict(dict)
	if err == nil && values == nil {
		err = ErrNoValueCompressor
	}
	return values, err
}
