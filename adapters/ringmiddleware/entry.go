package ringmiddleware

import (
	"encoding/binary"
	"math"
	"net/http"
	"slices"
	"time"
)

// entry is a stored response. It is encoded as one value of the cache:
//
//	form 3, audience, validator, failures         a byte each
//	end of the pause after them                   8 bytes, in milliseconds since 1970
//	status code                                   a uvarint
//	moment                                        a uvarint, in milliseconds since 1970
//	age, lifetime, whileRevalidate, ifError       each a uvarint, in milliseconds
//	number of stamps, and stamps                  each a uvarint
//	number of fields, and fields, of the header   the number is a uvarint
//	length of the body, and the body              the length is a uvarint
//
// A field is its name and its value, a string its length, a uvarint, and its bytes. Entries may
// outlive the process (ringcache.Options.File and snapshots), so any change needs another form.
type entry struct {
	code      int
	audience  audience
	validator validator
	failures  byte  // of the handler, since it was stored
	pauseEnd  int64 // in milliseconds since 1970

	moment          int64         // when it was stored, in milliseconds since 1970
	age             time.Duration // at that moment
	lifetime        time.Duration // the age at which it becomes stale
	whileRevalidate time.Duration // how long after that it may be served during a revalidation
	ifError         time.Duration // how long after that it may be served instead of an error

	stamps []uint64 // of the groups, when it was stored
	header []field
	body   []byte
}

type field struct{ name, value string }

// validator says with which headers the handler can be asked if a response is still the same. An
// ETag that was made here is not known to it.
type validator byte

const (
	noValidator validator = iota
	modified              // a strong Last-Modified
	tagged                // ETag, and Last-Modified if there is one
)

// validatorOf returns the validator of a response that the handler made at that time. Last-Modified
// in the same second is none, because the response may have changed since then, in that second (RFC
// 9110, section 8.8.2.2).
func validatorOf(code int, h http.Header, made time.Time) validator {
	changed, ok := date(h, "Last-Modified")
	switch {
	case code != http.StatusOK:
		return noValidator
	case h.Get("Etag") != "":
		return tagged
	case ok && made.Sub(changed) >= time.Second:
		return modified
	}
	return noValidator
}

const (
	entryForm  = 3
	failuresAt = 3
)

// keepValid is how long a response with a validator is kept after its lifetime, to be used again if
// the handler says that it is still the same.
const keepValid = 24 * time.Hour

// keep returns the time to live of the entry in the cache.
func (e *entry) keep() time.Duration {
	stale := max(e.whileRevalidate, e.ifError)
	if e.validator != noValidator {
		stale = max(stale, keepValid)
	}
	return e.lifetime - e.age + stale
}

// made returns the moment to which the age of the entry refers.
func (e *entry) made() int64 { return e.moment - e.age.Milliseconds() }

// addConditions adds the conditions that ask for another response than this one.
func (e *entry) addConditions(h http.Header) {
	for _, f := range e.header {
		switch {
		case f.name == "Etag" && e.validator == tagged:
			h.Set("If-None-Match", f.value)
		case f.name == "Last-Modified" && e.validator != noValidator:
			h.Set("If-Modified-Since", f.value)
		}
	}
}

// headers returns the header as net/http has it.
func (e *entry) headers() http.Header {
	h := make(http.Header, len(e.header))
	for _, f := range e.header {
		h[f.name] = append(h[f.name], f.value)
	}
	return h
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
	dst = append(dst, entryForm, byte(e.audience), byte(e.validator), e.failures)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.pauseEnd))
	dst = binary.AppendUvarint(dst, uint64(e.code))
	dst = binary.AppendUvarint(dst, uint64(e.moment))
	for _, t := range []time.Duration{e.age, e.lifetime, e.whileRevalidate, e.ifError} {
		dst = binary.AppendUvarint(dst, uint64(t/time.Millisecond))
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.stamps)))
	for _, stamp := range e.stamps {
		dst = binary.AppendUvarint(dst, stamp)
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

// decodeEntry decodes an entry, whose body shares the memory of v. It returns false if encode did
// not produce v.
func decodeEntry(v []byte) (e entry, ok bool) {
	d := decoder{rest: v}
	d.form(entryForm)
	e.audience = audience(d.byte(byte(everyone)))
	e.validator = validator(d.byte(byte(tagged)))
	e.failures = d.byte(maxFailures)
	var end [8]byte
	copy(end[:], d.take(len(end)))
	e.pauseEnd = int64(binary.LittleEndian.Uint64(end[:]))
	e.code = int(d.number(999))
	e.moment = int64(d.number(math.MaxInt64))
	e.age, e.lifetime = d.time(), d.time()
	e.whileRevalidate, e.ifError = d.time(), d.time()
	for range d.length(1) {
		e.stamps = append(e.stamps, d.number(math.MaxUint64))
	}
	if n := d.length(2); n > 0 { // a field takes two bytes at the least
		e.header = make([]field, 0, n)
		for range n {
			e.header = append(e.header, field{d.string(), d.string()})
		}
	}
	e.body = d.bytes()
	return e, d.done() && e.code >= 200
}

// decoder reads from the front of rest. After an error, all reads return zero values.
type decoder struct {
	rest []byte
	bad  bool
}

// done reports whether everything was read without an error.
func (d *decoder) done() bool { return !d.bad && len(d.rest) == 0 }

func (d *decoder) fail() { d.rest, d.bad = nil, true }

// form reads the number of the form, which must be want.
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

// length reads a number of items, each of which takes at least size bytes.
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
