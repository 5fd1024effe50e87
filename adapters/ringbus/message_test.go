package ringbus_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringbus"
)

// head begins a message of another instance.
var head = append([]byte{1}, "an instance's id"...)

// op is an operation of a message.
func op(number byte, data string) string {
	b := binary.AppendUvarint([]byte{number}, uint64(len(data)))
	return string(append(b, data...))
}

// A message removes what it says, and everything if it cannot be read to its end.
func TestReceive(t *testing.T) {
	all := []string{"k1", "k2", "k3", "", "n: k1", "n: k2"}
	for name, test := range map[string]struct {
		message string
		gone    []string // nil: everything
	}{
		"nil":                  {"", nil},
		"no id":                {string(head[:16]), nil},
		"another version":      {"\x02" + string(head[1:]), nil},
		"of another program":   {`{"hello": "world"}`, nil},
		"no operation":         {string(head), []string{""}[:0]},
		"a key":                {string(head) + op(3, "k1"), []string{"k1"}},
		"an empty key":         {string(head) + op(3, ""), []string{""}},
		"a long key":           {string(head) + op(3, strings.Repeat("k", 1<<20)), []string{""}[:0]},
		"of a namespace":       {string(head) + op(1, "n") + op(3, "k1"), []string{"n: k1"}},
		"back to all":          {string(head) + op(1, "n") + op(0, "") + op(3, "k1"), []string{"k1"}},
		"of no namespace":      {string(head) + op(1, "m") + op(3, "k1"), []string{""}[:0]},
		"reset of a namespace": {string(head) + op(1, "n") + op(2, ""), []string{"n: k1", "n: k2"}},
		"reset of no namespace": {
			string(head) + op(1, "m") + op(2, "") + op(1, "n") + op(3, "k2"), []string{"n: k2"},
		},
		"reset":             {string(head) + op(2, ""), nil},
		"unknown operation": {string(head) + op(3, "k1") + op(4, ""), nil},
		"half an operation": {string(head) + op(3, "k1") + "\x03", nil},
		"half a key":        {string(head) + op(3, "k1")[:2], nil},
		"half a length":     {string(head) + "\x03\x80", nil},
		"a length of 2^64":  {string(head) + "\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", nil},
		"a length of 2^70":  {string(head) + "\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", nil},
		"bytes after it":    {string(head) + op(1, "m") + op(3, "k1") + "\xff", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub()
			i := h.start(t, ringbus.Options{})
			i.set(i.cache, "k1", "k2", "k3", "")
			i.set(i.cache.Namespace("n"), "k1", "k2")
			h.inject([]byte(test.message))
			var want []string
			for _, k := range all {
				if test.gone != nil && !slices.Contains(test.gone, k) {
					want = append(want, k)
				}
			}
			var got []string
			for k := range i.cache.Keys() {
				got = append(got, string(k))
			}
			for k := range i.cache.Namespace("n").Keys() {
				got = append(got, "n: "+string(k))
			}
			require.ElementsMatch(t, want, got)
		})
	}
}

// A hostile message makes no namespaces, and leaves nothing behind on the heap.
func TestReceive_Hostile(t *testing.T) {
	h := newHub()
	i := h.start(t, ringbus.Options{})
	i.cache.Namespace("n")
	var names []byte
	for n := range uint32(200_000) {
		names = append(names, op(1, string(binary.BigEndian.AppendUint32(nil, n)))...)
		names = append(names, op(2, "")...)
	}
	for name, operations := range map[string][]byte{
		"names":     names,
		"resets":    bytes.Repeat([]byte(op(1, "n")+op(2, "")), 10_000),
		"deletions": bytes.Repeat([]byte(op(3, "k")), 1_000_000),
		"a key":     []byte(op(3, strings.Repeat("k", 16<<20))),
		"noise":     bytes.Repeat([]byte("noise"), 3<<20),
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			h.inject(append(bytes.Clone(head), operations...))
			require.Less(t, heap(), before+1<<20)
			for space := range i.cache.Namespaces() {
				require.Equal(t, "n", space)
			}
		})
	}
}

// heap returns the bytes of the Go heap that are reachable.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Whatever a message is, it removes only, makes no namespace, and allocates no more than its length
// and a bit. What is behind its end is not read.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(slices.Concat(head, []byte(op(3, "k")+op(1, "n")+op(3, "k")+op(0, "")+op(2, ""))))
	f.Add(slices.Concat(head, []byte(op(1, "m")+op(2, "")+"\x03\x05k")))
	f.Add(slices.Concat(head, bytes.Repeat([]byte(op(1, "n")+op(2, "")), 1000)))
	f.Add(slices.Concat(head, bytes.Repeat([]byte(op(0, "")+op(2, "")), 1000)))
	f.Add(slices.Concat(head, []byte(op(1, "n")), bytes.Repeat([]byte(op(2, "")), 1000)))
	h := newHub()
	i := h.start(f, ringbus.Options{})
	space := i.cache.Namespace("n")
	f.Fuzz(func(t *testing.T, message []byte) {
		require.NoError(t, i.cache.Set([]byte("k"), nil))
		require.NoError(t, space.Set([]byte("k"), nil))
		sent := bytes.Clone(message)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h.inject(message[:len(message):len(message)])
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(len(message)+16<<10))
		require.Equal(t, sent, message)
		require.LessOrEqual(t, i.cache.Len(), 1)
		require.LessOrEqual(t, space.Len(), 1)
		for name := range i.cache.Namespaces() {
			require.Equal(t, "n", name)
		}
	})
}
