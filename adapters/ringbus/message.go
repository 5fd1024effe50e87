package ringbus

import "encoding/binary"

// A message is
//
//	version | id of the sender | operations
//
// An operation is its number, the length of its data as a uvarint, and the data. Operations only
// remove, so neither their order matters nor how often they are applied.
const (
	version  = 1
	header   = 1 + 16
	fullSize = 64 << 10 // a message of this length takes no more operations
	maxKey   = 65_535   // of a cache

	opAll       = 0 // what follows is about the whole cache, as at the beginning
	opNamespace = 1 // ... about a namespace: its name
	opReset     = 2 // removes all entries
	opDelete    = 3 // removes a key
)

func appendOp(b []byte, op byte, data []byte) []byte {
	return append(binary.AppendUvarint(append(b, op), uint64(len(data))), data...)
}

// cutOp returns the first operation, and false if it is not whole or unknown.
func cutOp(b []byte) (op byte, data, rest []byte, ok bool) {
	n, used := binary.Uvarint(b[1:])
	if b[0] > opDelete || used <= 0 || n > uint64(len(b)-1-used) {
		return 0, nil, nil, false
	}
	b, op = b[1+used:], b[0]
	return op, b[:n], b[n:], true
}
