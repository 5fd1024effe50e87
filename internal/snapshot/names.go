package snapshot

import (
	"encoding/binary"
	"errors"
)

// A snapshot begins with the names of namespaces, each with the generation with which its keys
// begin. Their blocks are written twice, because without them nobody finds those keys.

// writeNames writes the blocks of names.
func (s *Saver) writeNames(w *Worker) error {
	b := &w.Blocks[0]
	for range 2 {
		for name, g := range s.Names {
			from := len(b.Bytes)
			e := Entry{KeyLen: len(name), ValueLen: generationSize, Freq: metaFreq}
			b.Bytes = append(AppendEntry(b.Bytes, e), name...)
			b.Bytes = binary.LittleEndian.AppendUint64(b.Bytes, g)
			b.Add(from, e.Freq)
			if len(b.Bytes) < s.maxBlock/2 {
				continue
			}
			if err := w.writeKind(b, kindNames, 0); err != nil {
				return err
			}
		}
		if err := w.writeKind(b, kindNames, 0); err != nil {
			return err
		}
	}
	return nil
}

// IsNames reports whether the block has names of namespaces instead of entries.
func (b *Ref) IsNames() bool { return b.Kind == kindNames }

// Names calls fn with each name of a block of names, and its generation.
func (b *Ref) Names(body []byte, fn func(name string, g uint64)) error {
	return b.Each(body, func(key int, e Entry) {
		if e.ValueLen == generationSize && !e.Negative {
			end := key + e.KeyLen
			fn(string(body[key:end]), binary.LittleEndian.Uint64(body[end:]))
		}
	})
}

// Names calls fn with each name of the snapshot, and its generation: perhaps twice. After Scan with
// salvage, damaged blocks are passed over: Load counts them.
func (c *Contents) Names(most uint64, fn func(name string, g uint64)) error {
	var buf buffers
	for i := range c.Blocks {
		b := &c.Blocks[i]
		if !b.IsNames() || b.Size > most {
			continue
		}
		body, err := c.body(b, &buf)
		if err == nil {
			err = b.Names(body, fn)
		}
		if err != nil && !(c.salvage && errors.Is(err, ErrCorrupt)) {
			return err
		}
	}
	return nil
}
