package main

import (
	"google.golang.org/protobuf/proto"

	"github.com/ringcache/ringcache"
)

// message is the constraint for pointers to a generated type T.
type message[T any] interface {
	*T
	proto.Message
}

// Codec returns a codec for pointers to messages of the generated type T, in wire
// format. P is inferred: Codec[structpb.Struct](). A message that was nil when it
// was set is empty when it is read.
func Codec[T any, P message[T]]() ringcache.Codec[P] { return codec[T, P]{} }

type codec[T any, P message[T]] struct{}

func (codec[T, P]) Append(dst []byte, m P) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

// Decode may get a buffer that is reused: Unmarshal copies all data that it retains.
func (codec[T, P]) Decode(data []byte) (P, error) {
	m := P(new(T))
	return m, proto.Unmarshal(data, m)
}
