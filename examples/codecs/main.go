// Codecs stores protocol buffer messages, and a struct as MessagePack, in a cache through typed
// views with short codecs (codec.go), reads them back and prints them. The messages are well-known
// types, so nothing is generated; your own types work the same way.
//
//	go run -C examples/codecs .
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringcache/ringcache"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "codecs: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its output passed in.
func run(out io.Writer) error {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	// Two types share the cache, each under its own prefix.
	users := ringcache.NewTyped[string](cache, Protobuf[structpb.Struct](),
		ringcache.TypedOptions{Prefix: "user:"})
	visits := ringcache.NewTyped[uint64](cache, Protobuf[wrapperspb.Int64Value](),
		ringcache.TypedOptions{Prefix: "visits:"})

	ada, err := structpb.NewStruct(map[string]any{"name": "Ada", "born": 1815})
	if err != nil {
		return fmt.Errorf("make a message: %w", err)
	}
	if err := errors.Join(users.Set("ada", ada), visits.Set(1815, wrapperspb.Int64(42))); err != nil {
		return fmt.Errorf("store messages: %w", err)
	}

	user, _, err := users.Get("ada")
	if err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	count, _, err := visits.Get(1815)
	if err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	fmt.Fprintf(out, "%s, born %v, has come %d times\n",
		user.GetFields()["name"].GetStringValue(), user.GetFields()["born"].GetNumberValue(),
		count.GetValue())
	fmt.Fprintf(out, "the same message: %v\n", proto.Equal(ada, user))

	// A miss is a nil message and no error; accessors of nil messages are zero.
	nobody, ok, err := users.Get("nobody")
	if err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	fmt.Fprintf(out, "nobody: %v, %d fields\n", ok, len(nobody.GetFields()))
	return orders(out, cache)
}

// order is stored as MessagePack.
type order struct {
	Item  string
	Price float64
	Due   time.Time
}

func orders(out io.Writer, cache *ringcache.Cache) error {
	view := ringcache.NewTyped[uint64](cache, Msgpack[order](),
		ringcache.TypedOptions{Prefix: "order:"})
	if err := view.Set(17, order{"lamp", 19.5, time.Unix(1e9, 0)}); err != nil {
		return fmt.Errorf("store an order: %w", err)
	}
	o, ok, err := view.Get(17)
	if err != nil {
		return fmt.Errorf("read an order: %w", err)
	}
	_, err = fmt.Fprintln(out, "order:", o.Item, o.Price, o.Due.UTC().Format(time.DateOnly), ok)
	return err
}
