package ringmiddleware

import (
	"math"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func someEntries() []entry {
	return []entry{
		{code: 200, body: []byte{}},
		{code: 404, lifetime: time.Hour, header: []field{{"X-Empty", ""}}, body: []byte("gone")},
		{
			code: 200, audience: everyone, validator: tagged, stamps: []uint64{0, math.MaxUint64},
			failures: maxFailures, pauseEnd: math.MaxInt64, moment: math.MaxInt64,
			lifetime: maxTime, age: 1500 * time.Millisecond,
			whileRevalidate: time.Minute, ifError: maxTime,
			header: []field{{"Etag", `"1"`}, {"Vary", "Accept"}, {"X-Own", "\x00\xff"}},
			body:   make([]byte, 1000),
		},
	}
}

func TestEntry_ComesBack(t *testing.T) {
	for _, want := range someEntries() {
		v := want.encode([]byte("before"))
		got, ok := decodeEntry(v[len("before"):])
		require.True(t, ok)
		require.Equal(t, want, got)
	}
}

func TestEntry_IsCompact(t *testing.T) {
	e := entry{code: 200, lifetime: 50 * time.Millisecond,
		header: []field{{"Cache-Control", "max-age=60"}, {"Etag", `"1"`}}}
	// Form, audience, validator, pause; code 2, five times, three counts; fields of two lengths,
	// name, value.
	require.Len(t, e.encode(nil), 12+2+5+3+(2+13+10)+(2+4+3))
}

// What was cut off, or has something behind it, is no entry.
func TestEntry_Refused(t *testing.T) {
	for _, e := range someEntries() {
		v := e.encode(nil)
		for n := range v {
			_, ok := decodeEntry(v[:n])
			require.False(t, ok, "%d bytes of %d", n, len(v))
		}
		_, ok := decodeEntry(append(v, 0))
		require.False(t, ok)
	}
	const pause = "\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	const head = "\x03\x00\x00" + pause + "\xc8\x01\x00\x00\x00\x00\x00\x00"
	const max = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	_, ok := decodeEntry([]byte(head + "\x00\x00"))
	require.True(t, ok)
	for name, v := range map[string]string{
		"another form":       "\x01" + head[1:] + "\x00\x00",
		"another audience":   "\x03\x03" + head[2:] + "\x00\x00",
		"another validator":  "\x03\x00\x03" + head[3:] + "\x00\x00",
		"too many failures":  "\x03\x00\x00\x1f" + head[4:] + "\x00\x00",
		"code 100":           "\x03\x00\x00" + pause + "\x64\x00\x00\x00\x00\x00\x00\x00\x00",
		"code 2^64-1":        "\x03\x00\x00" + pause + max + "\x00\x00\x00\x00\x00\x00\x00\x00",
		"moment 2^64-1":      "\x03\x00\x00" + pause + "\xc8\x01" + max + "\x00\x00\x00\x00\x00\x00\x00",
		"time 2^64-1":        "\x03\x00\x00" + pause + "\xc8\x01\x00" + max + "\x00\x00\x00\x00\x00\x00",
		"2^64-1 fields":      head + max + "\x00",
		"more than fit":      head + "\x03\x00\x00\x00",
		"name of 2^64-1":     head + "\x01" + max + "\x00\x00",
		"value of 2^64-1":    head + "\x01\x01" + max + "\x00",
		"body of 2^64-1":     head + "\x00" + max,
		"body, one too long": head + "\x00\x02x",
	} {
		_, ok := decodeEntry([]byte(v))
		require.False(t, ok, name)
	}
}

func TestIndex_ComesBack(t *testing.T) {
	for _, want := range []index{{passFrom: passNone}, {
		generation: [16]byte{1, 15: 2}, vary: []string{"Accept", "X-B"}, passFrom: anonymous,
	}} {
		v := want.encode(nil)
		got, ok := decodeIndex(v)
		require.True(t, ok)
		require.Equal(t, &want, got)
		for n := range v {
			_, ok := decodeIndex(v[:n])
			require.False(t, ok)
		}
		_, ok = decodeIndex(append(v, 0))
		require.False(t, ok)
	}
}

func TestNames_AreCanonical(t *testing.T) {
	for _, name := range slices.Concat(ofConnection, conditions) {
		require.Equal(t, http.CanonicalHeaderKey(name), name)
	}
}

// requireProportion fails if fn allocates much more than n bytes of input justify.
func requireProportion(t *testing.T, n int, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64*n+16<<10))
}

// Any bytes are an entry that is the same when it is written again, or a miss.
func FuzzEntry(f *testing.F) {
	for _, e := range someEntries() {
		f.Add(e.encode(nil))
	}
	f.Add([]byte("\x02\x00\x00\xc8\x01\x00\x00\x00\x00\x00\x01\x01\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, v []byte) {
		var e entry
		var ok bool
		requireProportion(t, len(v), func() { e, ok = decodeEntry(v) })
		if !ok {
			return
		}
		require.GreaterOrEqual(t, e.code, 200)
		require.LessOrEqual(t, len(e.body), len(v))
		require.LessOrEqual(t, len(e.header), len(v)/2)
		again, ok := decodeEntry(e.encode(nil))
		require.True(t, ok)
		require.Equal(t, e.code, again.code)
		require.Equal(t, e.header, again.header)
		require.Equal(t, e.body, again.body)
		require.Equal(t, e.keep(), again.keep())
		// It can be sent.
		m := &Middleware{}
		m.answer(&recording{}, newRequest("/"), &found{entry: e}, "1", "hit")
	})
}

func FuzzIndex(f *testing.F) {
	f.Add((&index{vary: []string{"Accept"}}).encode(nil))
	f.Fuzz(func(t *testing.T, v []byte) {
		var x *index
		var ok bool
		requireProportion(t, len(v), func() { x, ok = decodeIndex(v) })
		if !ok {
			return
		}
		again, ok := decodeIndex(x.encode(nil))
		require.True(t, ok)
		require.Equal(t, x, again)
	})
}

// Any header is read without harm, and what is in a list was in the header.
func FuzzDirectives(f *testing.F) {
	f.Add(`max-age=60, a="b\",c", no-store`, "W/\"1\", *")
	f.Fuzz(func(t *testing.T, control, tags string) {
		h := http.Header{"Cache-Control": {control}, "If-None-Match": {tags}, "Vary": {control}}
		var d directives
		requireProportion(t, 2*len(control)+len(tags), func() {
			d = directivesOf(h)
			varyNames(h.Values("Vary"))
			clientHas(h, http.Header{"Etag": {`"1"`}})
		})
		for name := range d {
			value, _ := d.time(name)
			require.GreaterOrEqual(t, value, time.Duration(0))
			require.LessOrEqual(t, value, maxTime)
		}
		require.True(t, slices.IsSorted(varyNames(h.Values("Vary"))))
		m := &Middleware{options: Options{TTL: time.Minute}}
		if e, _, ok := m.judge(200, h, time.Second); ok {
			require.GreaterOrEqual(t, e.keep(), minKeep)
			require.False(t, d.hasAny("no-store", "private"))
		}
	})
}
