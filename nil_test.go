package ringcache

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A nil *Cache is a nil pointer like any other: a panic that can be recovered from, and
// not a fault that ends the process.
func TestNilCache_PanicsRecoverably(t *testing.T) {
	k, v := []byte("key"), []byte("value")
	for _, call := range everyCall() {
		t.Run(call.name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				var fault runtime.Error
				require.ErrorAs(t, err, &fault)
			}()
			call.do(nil, k, v)
		})
	}
}
