package main

import (
	"google.golang.org/protobuf/proto"

	"github.com/ringcache/ringcache"
)

// message is what a generated type T is by its pointer.
type message[T any] interface {
	*T
	proto.Message
}

// Codec returns a codec for messages of the generated type T, by pointer, in
// their wire form. P need not be given: Codec[structpb.Struct](). A message that
// was nil when it was set is empty when it is read.
func Codec[T any, P message[T]]() ringcache.Codec[P] { return codec[T, P]{} }

type codec[T any, P message[T]] struct{}

func (codec[T, P]) Append(dst []byte, m P) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

// Decode is handed a buffer that is used again: Unmarshal copies what it keeps.
func (codec[T, P]) Decode(data []byte) (P, error) {
	m := P(new(T))
	return m, proto.Unmarshal(data, m)
}
