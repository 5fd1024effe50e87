package memo

// Handle leads from a codec, which embeds it, to its table. Its method is promoted to the codec;
// only TableOf can call it, since it is not exported.
type Handle struct {
	codec any
	table any // a *Table of the codec's type of values
}

// NewHandle returns the handle of a codec.
func NewHandle[V any](codec any, table *Table[V]) Handle { return Handle{codec, table} }

func (h Handle) handle() Handle { return h }

// TableOf returns the table of a codec, or nil if it has none. The codec of a type that embeds one
// with a table has none itself, because a view must call the methods of that type.
func TableOf[V any](codec any) *Table[V] {
	h, ok := codec.(interface{ handle() Handle })
	if !ok || h.handle().codec != codec {
		return nil
	}
	table, _ := h.handle().table.(*Table[V])
	return table
}
