package main

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringcache/ringcache"
)

func newCache(t *testing.T) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(32 << 20)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	const want = "Ada, born 1815, has come 42 times\nthe same message: true\n" +
		"nobody: false, 0 fields\norder: lamp 19.5 2001-09-09 true\n"
	if out.String() != want {
		t.Errorf("run prints\n%s\nwant\n%s", out.String(), want)
	}
}

func TestMessagesComeBack(t *testing.T) {
	var list []any
	for i := range 1000 {
		list = append(list, i)
	}
	view := ringcache.NewTyped[string](newCache(t), Protobuf[structpb.Value](),
		ringcache.TypedOptions{})
	for name, v := range map[string]any{
		"null":   nil,
		"bool":   true,
		"text":   strings.Repeat("text ", 50),
		"nested": map[string]any{"a": []any{1.5, "b", nil}, "": map[string]any{}},
		"large":  list, // is copied before it is decoded
	} {
		want, err := structpb.NewValue(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.Set(name, want); err != nil {
			t.Fatal(err)
		}
		got, ok, err := view.Get(name)
		if err != nil || !ok || !proto.Equal(want, got) {
			t.Errorf("%s: got %v, %v, %v", name, got, ok, err)
		}
	}
}

// A message must not share memory with the cache.
func TestMessagesAreCopies(t *testing.T) {
	view := ringcache.NewTyped[int](newCache(t), Protobuf[wrapperspb.BytesValue](),
		ringcache.TypedOptions{})
	for _, n := range []int{10, 5000} {
		message := func(b string) *wrapperspb.BytesValue {
			return wrapperspb.Bytes([]byte(strings.Repeat(b, n)))
		}
		var read [2]*wrapperspb.BytesValue
		for i, b := range []string{"a", "b"} { // the second one lies where the first one lay
			if err := view.Set(n, message(b)); err != nil {
				t.Fatal(err)
			}
			var err error
			if read[i], _, err = view.Get(n); err != nil {
				t.Fatal(err)
			}
		}
		if !proto.Equal(read[0], message("a")) || !proto.Equal(read[1], message("b")) {
			t.Errorf("%d bytes: read %.10q and %.10q", n, read[0].GetValue(), read[1].GetValue())
		}
	}
}

func TestNilAndOtherBytes(t *testing.T) {
	cache := newCache(t)
	view := ringcache.NewTyped[string](cache, Protobuf[wrapperspb.StringValue](),
		ringcache.TypedOptions{})

	if err := view.Set("nil", nil); err != nil {
		t.Fatal(err)
	}
	if m, ok, err := view.Get("nil"); m == nil || !ok || err != nil || m.GetValue() != "" {
		t.Errorf("a nil message came back as %v, %v, %v", m, ok, err)
	}
	if m, ok, err := view.Get("absent"); m != nil || ok || err != nil {
		t.Errorf("an absent message came back as %v, %v, %v", m, ok, err)
	}

	if err := cache.Set([]byte("other"), []byte("no message")); err != nil {
		t.Fatal(err)
	}
	m, ok, err := view.Get("other")
	if m != nil || ok || !errors.Is(err, ringcache.ErrDecode) || !errors.Is(err, proto.Error) {
		t.Errorf("other bytes came back as %v, %v, %v", m, ok, err)
	}
	if err := view.Set("invalid", wrapperspb.String("\xff")); !errors.Is(err, ringcache.ErrEncode) {
		t.Errorf("Set of a string that is not UTF-8: error %v, want ErrEncode", err)
	}
}

// What is no MessagePack of the type is an error, and values share no memory with the cache.
func TestMsgpack(t *testing.T) {
	cache := newCache(t)
	view := ringcache.NewTyped[string](cache, Msgpack[map[string][]byte](), ringcache.TypedOptions{})
	var read [2]map[string][]byte
	for i, text := range []string{"one", "two"} {
		if err := view.Set("k", map[string][]byte{"a": []byte(text)}); err != nil {
			t.Fatal(err)
		}
		var err error
		if read[i], _, err = view.Get("k"); err != nil {
			t.Fatal(err)
		}
	}
	if string(read[0]["a"]) != "one" || string(read[1]["a"]) != "two" {
		t.Errorf("read %q", read)
	}
	if err := cache.Set([]byte("other"), []byte("\xff\xff")); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := view.Get("other"); v != nil || ok || !errors.Is(err, ringcache.ErrDecode) {
		t.Errorf("other bytes came back as %v, %v, %v", v, ok, err)
	}
}
