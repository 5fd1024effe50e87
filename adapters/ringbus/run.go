package ringbus

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/ringcache/ringcache"
)

// Run subscribes to the bus, and removes what other instances publish, until ctx ends; it returns
// the error of ctx. Call it once, in a separate goroutine.
//
// Run empties the whole cache when it has subscribed, since messages may have been missed before,
// even by a cache in a file; when the subscription is lost; every MaxStale while there is none; and
// when it ends.
func (b *Bus) Run(ctx context.Context) error {
	tick := time.NewTicker(b.options.MaxStale)
	lost := make(chan error)
	subscribe := func() { lost <- b.transport.Subscribe(ctx, b.subscribed, b.receive) }
	go subscribe()
	var ended <-chan struct{} // nil while Subscribe runs
	for {
		select {
		case err := <-lost:
			b.live.Store(false)
			b.empty()
			if b.options.OnLost != nil {
				b.options.OnLost(err)
			}
			ended = ctx.Done()
		case <-ended:
			b.empty()
			return ctx.Err()
		case <-tick.C:
			if ended != nil {
				ended = nil
				go subscribe()
			}
			if !b.live.Load() {
				b.empty()
			}
			if b.owed.Load() {
				b.join(opAll, [][]byte{nil}) // any message will do: see send
			}
		}
	}
}

func (b *bus) subscribed() {
	b.empty()
	b.live.Store(true)
}

func (b *bus) empty() {
	b.whole.Reset()
	b.emptied.Add(1)
}

// receive applies a message. One that cannot be read may have been about any entry.
func (b *bus) receive(message []byte) {
	if len(message) < header || message[0] != version {
		b.empty()
		return
	}
	if bytes.HasPrefix(message, b.head[:]) {
		return // Del and Reset apply their own
	}
	b.received.Add(1)
	cache := b.whole
	var spaces map[string]*ringcache.Cache
	var name []byte
	for rest := message[header:]; len(rest) > 0; {
		op, data, after, ok := cutOp(rest)
		rest = after
		switch {
		case !ok:
			b.empty()
		case op == opAll:
			cache = b.whole
		case op == opNamespace:
			if spaces == nil { // Cache.Namespace would make one that is not here
				spaces = maps.Collect(b.whole.Namespaces())
			}
			name, cache = data, spaces[string(data)]
		case cache == nil:
		case op == opReset && cache == b.whole:
			cache.Reset()
			return // nothing is left to remove
		case op == opReset:
			cache.Reset()
			cache = nil
			delete(spaces, string(name)) // or a message could reset it thousands of times
		case op == opDelete:
			cache.Del(data)
		}
	}
}
