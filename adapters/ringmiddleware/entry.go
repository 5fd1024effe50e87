package ringmiddleware

import (
	"encoding/binary"
	"net/http"
	"slices"
	"time"
)

// entry is a response as it is kept. It becomes one value of the cache:
//
//	form 1, audience                              a byte each
//	status code                                   a uvarint
//	age, lifetime, whileRevalidate, ifError       each a uvarint, in milliseconds
//	number of fields, and fields, of the header   the number is a uvarint
//	length of the body, and the body              the length is a uvarint
//
// A field is its name and its value, a string its length, a uvarint, and its bytes. Entries may
// outlive the process (ringcache.Options.File and snapshots), so any change needs another form.
type entry struct {
	code     int
	audience audience

	age             time.Duration // when it was stored
	lifetime        time.Duration // at this age it is stale
	whileRevalidate time.Duration // so long after that it may be served meanwhile
	ifError         time.Duration // so long after that it may be served instead of an error

	header []field
	body   []byte
}

type field struct{ name, value string }

const entryForm = 1

// keep returns how long the cache is to have the entry, from the moment on when it is stored.
func (e *entry) keep() time.Duration {
	return e.lifetime - e.age + max(e.whileRevalidate, e.ifError)
}

// vary returns the names of the headers that the response depends on.
func (e *entry) vary() []string {
	var values []string
	for _, f := range e.header {
		if f.name == "Vary" {
			values = append(values, f.value)
		}
	}
	return varyNames(values)
}

// sameFor reports whether both requests select the same variant.
func (e *entry) sameFor(a, b *http.Request) bool {
	return !slices.ContainsFunc(e.vary(), func(name string) bool {
		return selecting(a, name) != selecting(b, name)
	})
}

// encode appends the entry to dst.
func (e *entry) encode(dst []byte) []byte {
	dst = append(dst, entryForm, byte(e.audience))
	dst = binary.AppendUvarint(dst, uint64(e.code))
	for _, t := range []time.Duration{e.age, e.lifetime, e.whileRevalidate, e.ifError} {
		dst = binary.AppendUvarint(dst, uint64(t/time.Millisecond))
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.header)))
	for _, f := range e.header {
		dst = appendString(dst, f.name)
		dst = appendString(dst, f.value)
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.body)))
	return append(dst, e.body...)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// decodeEntry reads an entry. Its body is a part of v. It reports false for what encode has not
// made.
func decodeEntry(v []byte) (e entry, ok bool) {
	d := decoder{rest: v}
	d.form(entryForm)
	e.audience = audience(d.byte(byte(everyone)))
	e.code = int(d.number(999))
	e.age, e.lifetime = d.time(), d.time()
	e.whileRevalidate, e.ifError = d.time(), d.time()
	if n := d.length(2); n > 0 { // a field takes two bytes at the least
		e.header = make([]field, 0, n)
		for range n {
			e.header = append(e.header, field{d.string(), d.string()})
		}
	}
	e.body = d.bytes()
	return e, d.done() && e.code >= 200
}

// decoder reads from the front of rest. Once something is bad, all that it reads is empty.
type decoder struct {
	rest []byte
	bad  bool
}

// done reports whether all was read and nothing was bad.
func (d *decoder) done() bool { return !d.bad && len(d.rest) == 0 }

func (d *decoder) fail() { d.rest, d.bad = nil, true }

// form reads the byte that what follows begins with.
func (d *decoder) form(want byte) {
	if d.byte(want) != want {
		d.fail()
	}
}

func (d *decoder) byte(most byte) byte {
	if len(d.rest) == 0 || d.rest[0] > most {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) number(most uint64) uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > most {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// time reads milliseconds. An age may be a lifetime and one more.
func (d *decoder) time() time.Duration {
	return time.Duration(d.number(uint64(2*maxTime/time.Millisecond))) * time.Millisecond
}

// length reads how many things follow that take size bytes each, or more.
func (d *decoder) length(size int) int { return int(d.number(uint64(len(d.rest) / size))) }

func (d *decoder) bytes() []byte { return d.take(d.length(1)) }

// take reads n bytes.
func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes()) }
