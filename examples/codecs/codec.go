package main

import (
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"

	"github.com/ringcache/ringcache/codec"
)

// message is the constraint for pointers to a generated type T.
type message[T any] interface {
	*T
	proto.Message
}

// Protobuf returns a codec for pointers to messages of the generated type T, in wire format. P is
// inferred: Protobuf[structpb.Struct](). A message that was nil when it was set is empty when it is
// read.
func Protobuf[T any, P message[T]]() codec.Codec[P] {
	return codec.Func(
		func(dst []byte, m P) ([]byte, error) {
			return proto.MarshalOptions{}.MarshalAppend(dst, m)
		},
		func(data []byte) (P, error) { // Unmarshal copies all data that it keeps
			m := P(new(T))
			return m, proto.Unmarshal(data, m)
		},
	)
}

// Msgpack returns a codec that encodes values with MessagePack.
func Msgpack[V any]() codec.Codec[V] {
	return codec.Func(
		func(dst []byte, v V) ([]byte, error) {
			data, err := msgpack.Marshal(v)
			return append(dst, data...), err
		},
		func(data []byte) (v V, err error) { // copies, too
			err = msgpack.Unmarshal(data, &v)
			return v, err
		},
	)
}
