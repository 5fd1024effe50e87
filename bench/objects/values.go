package objects

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/codec"
)

// Values are what is stored.
type Values struct {
	Kind    string // json or proto
	Bytes   int    // of the encoding of one, about
	Entries int
}

func (v Values) String() string {
	return fmt.Sprintf("%d values of %d bytes, %s", v.Entries, v.Bytes, v.Kind)
}

// kind is a type of values: how they are made, told apart, and encoded. More parts make a value
// larger.
type kind[V any] struct {
	codec ringcache.Codec[V]
	make  func(id uint64, parts int) V
	id    func(v V) uint64
}

// partsFor returns how many parts make an encoding of about that many bytes.
func (k *kind[V]) partsFor(bytes int) (parts int, err error) {
	for {
		data, err := k.codec.Append(nil, k.make(1<<20, parts))
		if err != nil || len(data) >= bytes {
			return parts, err
		}
		parts++
	}
}

// order is what an API stores as JSON.
type order struct {
	ID     uint64  `json:"id"`
	Buyer  string  `json:"buyer"`
	City   string  `json:"city"`
	Status string  `json:"status"`
	Total  float64 `json:"total"`
	Paid   bool    `json:"paid"`
	Items  []item  `json:"items"`
}

type item struct {
	Name  string  `json:"name"`
	SKU   string  `json:"sku"`
	Count int     `json:"count"`
	Price float64 `json:"price"`
}

func text(id uint64, part int) string {
	return fmt.Sprintf("%012x", load.Mix(id+uint64(part)<<40)>>16)
}

var orders = kind[*order]{
	codec: codec.JSON[*order](),
	make: func(id uint64, parts int) *order {
		o := &order{ID: id, Buyer: text(id, 1), City: text(id, 2), Status: "shipped", Total: 12.5}
		for i := range parts {
			o.Items = append(o.Items, item{text(id, 2*i+3), text(id, 2*i+4), i, float64(i) + 0.99})
		}
		return o
	},
	id: func(o *order) uint64 { return o.ID },
}

// messages are of a generated type that comes with the protocol buffers' module: a list of
// messages with strings and numbers.
var messages = kind[*descriptorpb.DescriptorProto]{
	codec: codec.Func(
		func(dst []byte, m *descriptorpb.DescriptorProto) ([]byte, error) {
			return proto.MarshalOptions{}.MarshalAppend(dst, m)
		},
		func(data []byte) (*descriptorpb.DescriptorProto, error) {
			m := new(descriptorpb.DescriptorProto)
			return m, proto.Unmarshal(data, m)
		}),
	make: func(id uint64, parts int) *descriptorpb.DescriptorProto {
		m := &descriptorpb.DescriptorProto{
			Name:          proto.String(text(id, 1)),
			ReservedRange: []*descriptorpb.DescriptorProto_ReservedRange{{Start: proto.Int32(int32(id))}},
		}
		for i := range parts {
			m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
				Name:     proto.String(text(id, 2*i+2)),
				TypeName: proto.String(text(id, 2*i+3)),
				Number:   proto.Int32(int32(i)),
				JsonName: proto.String("json"),
			})
		}
		return m
	},
	id: func(m *descriptorpb.DescriptorProto) uint64 {
		return uint64(m.GetReservedRange()[0].GetStart())
	},
}
