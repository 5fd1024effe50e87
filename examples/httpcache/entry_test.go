package main

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"
)

func someEntries() []entry {
	return []entry{
		{code: 200, vary: []field{}, header: []field{}, body: []byte{}},
		{code: 404, lifetime: time.Hour, vary: []field{}, header: []field{{"X-Empty", ""}}, body: []byte("gone")},
		{
			code:     200,
			lifetime: 365 * 24 * time.Hour,
			vary:     []field{{"Accept-Language", "de"}, {"X-Own", ""}},
			header:   []field{{"Etag", `"1"`}, {"Vary", "Accept-Language, X-Own"}, {"X-Own", "\x00\xff"}},
			body:     make([]byte, 1000),
		},
	}
}

func TestEntryComesBack(t *testing.T) {
	for _, want := range someEntries() {
		v := want.encode([]byte("before"))
		got, ok := decode(v[len("before"):])
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, ok, want)
		}
	}
}

func TestEntryIsCompact(t *testing.T) {
	e := entry{code: 200, lifetime: time.Minute, header: []field{{"Cache-Control", "max-age=60"}, {"Etag", `"1"`}}}
	// Code 2, lifetime 1, two counts; two fields of name 1, length 1 and value.
	if got, want := len(e.encode(nil)), 2+1+2+(2+10)+(2+3); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// Only whole headers are taken: what is cut off within them is no entry.
func TestDecodeRefuses(t *testing.T) {
	for _, e := range someEntries() {
		v := e.encode(nil)
		for n := range len(v) - len(e.body) {
			if got, ok := decode(v[:n]); ok {
				t.Errorf("decode of %d bytes of %d: %+v", n, len(v), got)
			}
		}
	}
	for _, v := range []string{
		"\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",             // 2^64-1 fields
		"\x01\x01\x00\x01\xff\x01xxx",                                  // no such name
		"\x01\x01\x00\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // a value of 2^64-1 bytes
	} {
		if got, ok := decode([]byte(v)); ok {
			t.Errorf("decode(%q): %+v", v, got)
		}
	}
}

func TestFieldsOf(t *testing.T) {
	h := http.Header{"Age": {"1"}, "Content-Length": {"2"}, "Connection": {"close"}, "X-Own": {"3", "4"}}
	if got, want := fieldsOf(h), []field{{"X-Own", "3"}, {"X-Own", "4"}}; !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
}

func TestKnownNamesAreCanonical(t *testing.T) {
	for i, name := range slices.Concat(knownNames, notKept) {
		if name != http.CanonicalHeaderKey(name) {
			t.Errorf("name %d is %q, would never be met", i, name)
		}
	}
}
