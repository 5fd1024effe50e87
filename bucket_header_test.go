package ringcache

import (
	"encoding/binary"
	"testing"
)

// The bytes of a long header, read as those of a short one, are no key: not for
// a key as long as they say, that agrees with what would be its bytes.
func TestBucket_LongHeaderIsNoKey(t *testing.T) {
	for klen := maxShortKey + 1; klen < 256; klen++ {
		g := tiny(1, 4096, 16)
		g.seed = [2]uint64{} // all hashes are equal
		c := mustCache(t, g)
		k := make([]byte, klen)
		for i := range k {
			k[i] = byte(i)
		}
		v := []byte("value")
		if err := c.Set(k, v); err != nil {
			t.Fatal(err)
		}
		rec := binary.LittleEndian.AppendUint32(nil, uint32(len(v)))
		rec = append(append(rec, k...), v...)
		for n := range len(rec) + 1 {
			if v, ok := c.HasGet(nil, rec[:n]); ok {
				t.Errorf("key of %d bytes: %d bytes of its record are found as a key, with %q", klen, n, v)
			}
		}
		if got := string(c.Get(nil, k)); got != string(v) {
			t.Errorf("key of %d bytes: %q", klen, got)
		}
	}
}
