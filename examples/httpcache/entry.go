package main

import (
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"time"
)

// entry is a response as it is kept. It becomes one value of the cache:
//
//	status code, lifetime in seconds            each a uvarint
//	number of fields, and fields, of vary       a number is a uvarint
//	number of fields, and fields, of header
//	body                                        the rest
//
// A field is its name and its value. A string is its length, a uvarint, and its
// bytes; but a name that knownNames has is the number of its place there, from
// 1 on, and any other one a 0 and a string. So a header that many responses have
// takes two bytes beside its value.
type entry struct {
	code     int
	lifetime time.Duration
	vary     []field // the request's headers that the response depends on
	header   []field
	body     []byte
}

type field struct{ name, value string }

// knownNames may grow in any way: entries do not outlive the process.
var knownNames = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Accept-Ranges",
	"Access-Control-Allow-Origin", "Cache-Control", "Content-Encoding",
	"Content-Language", "Content-Security-Policy", "Content-Type", "Date",
	"Etag", "Expires", "Last-Modified", "Link", "Location", "Server",
	"Strict-Transport-Security", "Vary", "X-Content-Type-Options",
}

// notKept are headers of a connection, not of a response, and those that are
// made anew for every answer.
var notKept = []string{
	"Age", "Connection", "Content-Length", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Upgrade",
}

// fieldsOf returns the fields of a response's header that are kept.
func fieldsOf(h http.Header) []field {
	var fields []field
	for name, values := range h {
		if slices.Contains(notKept, name) {
			continue
		}
		for _, value := range values {
			fields = append(fields, field{name, value})
		}
	}
	return fields
}

// varyOf returns those of the request's headers that the response depends on.
func varyOf(request, response http.Header) []field {
	var fields []field
	for _, name := range list(response.Values("Vary")) {
		fields = append(fields, field{name, joined(request, name)})
	}
	return fields
}

// joined returns all values of a header as one.
func joined(h http.Header, name string) string { return strings.Join(h.Values(name), ", ") }

// fits reports whether the entry answers a request with this header.
func (e *entry) fits(request http.Header) bool {
	return !slices.ContainsFunc(e.vary, func(f field) bool {
		return joined(request, f.name) != f.value
	})
}

// encode appends the entry to dst.
func (e *entry) encode(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.code))
	dst = binary.AppendUvarint(dst, uint64(e.lifetime/time.Second))
	dst = appendFields(dst, e.vary)
	dst = appendFields(dst, e.header)
	return append(dst, e.body...)
}

func appendFields(dst []byte, fields []field) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(fields)))
	for _, f := range fields {
		known := slices.Index(knownNames, f.name) + 1
		dst = binary.AppendUvarint(dst, uint64(known))
		if known == 0 {
			dst = appendString(dst, f.name)
		}
		dst = appendString(dst, f.value)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// decode reads an entry. Its body is a part of v. It reports false for what
// encode has not made.
func decode(v []byte) (e entry, ok bool) {
	d := decoder{rest: v}
	e.code = int(d.number())
	e.lifetime = time.Duration(d.number()) * time.Second
	e.vary = d.fields()
	e.header = d.fields()
	e.body = d.rest
	return e, !d.bad
}

// decoder reads from the front of rest. Once something is bad, all that it
// reads is empty.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) string() string {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.fail()
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) fields() []field {
	n := d.number()
	if n > uint64(len(d.rest)) { // a field takes more than a byte
		d.fail()
		return nil
	}
	fields := make([]field, 0, n)
	for range n {
		fields = append(fields, field{d.name(), d.string()})
	}
	return fields
}

func (d *decoder) name() string {
	known := d.number()
	switch {
	case known == 0:
		return d.string()
	case known > uint64(len(knownNames)):
		d.fail()
		return ""
	}
	return knownNames[known-1]
}

func (d *decoder) fail() { d.rest, d.bad = nil, true }
