package objects

import (
	"fmt"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/codec"
)

// order is what an API stores as JSON. More items make it larger.
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

func newOrder(id uint64, items int) *order {
	o := &order{ID: id, Buyer: text(id, 1), City: text(id, 2), Status: "shipped", Total: 12.5}
	for i := range items {
		o.Items = append(o.Items, item{text(id, 2*i+3), text(id, 2*i+4), i, float64(i) + 0.99})
	}
	return o
}

func text(id uint64, part int) string {
	return fmt.Sprintf("%012x", load.Mix(id+uint64(part)<<40)>>16)
}

var encoding = codec.JSON[*order]()

// itemsFor returns how many items make an encoding of about that many bytes.
func itemsFor(bytes int) (items int, err error) {
	for {
		data, err := encoding.Append(nil, newOrder(1<<20, items))
		if err != nil || len(data) >= bytes {
			return items, err
		}
		items++
	}
}
