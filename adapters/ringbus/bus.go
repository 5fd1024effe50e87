package ringbus

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// Transport sends messages to all instances. They may arrive late, repeatedly, and in any order. A
// message has up to about 64 KB, plus at most one key and one name of a namespace.
type Transport interface {
	// Publish sends a message to all subscribers, and returns when the bus has accepted it. After an
	// error the message may have been sent or not. message is not changed afterwards. A Bus makes
	// one call at a time, whose context ends after 5 s.
	Publish(ctx context.Context, message []byte) error

	// Subscribe calls receive for each message of any instance until ctx ends or a message may have
	// been missed, because the connection was lost or this subscriber was too slow. It then returns
	// the reason; it must not go on silently with another connection. It calls subscribed as soon as
	// all messages that are published from then on will arrive. receive does not keep message. Neither
	// may be called after Subscribe has returned.
	Subscribe(ctx context.Context, subscribed func(), receive func(message []byte)) error
}

// Options are the settings of a Bus.
type Options struct {
	// MaxStale is the interval at which [Bus.Run] empties the cache and tries to subscribe while there
	// is no subscription. The default, for 0 or less, is 1 s.
	MaxStale time.Duration

	// OnLost, if not nil, is called each time that Subscribe has returned, with its error, after the
	// cache has been emptied. [Bus.Run] waits for it.
	OnLost func(err error)
}

// Stats are the counters of a Bus since New.
type Stats struct {
	Subscribed bool   // whether there is a subscription now
	Published  uint64 // calls of Transport.Publish that returned nil
	Failed     uint64 // calls of Transport.Publish that returned an error
	Received   uint64 // messages of other instances, with the header of this version
	Emptied    uint64 // times that Run or an unreadable message emptied the cache
}

// Bus removes entries from the caches of all instances of a service. It is safe for concurrent use.
type Bus struct {
	*bus
	cache  *ringcache.Cache
	target string // the operation that names the cache
}

// bus is what a Bus and those of its namespaces have in common.
type bus struct {
	whole     *ringcache.Cache
	transport Transport
	options   Options
	head      [header]byte // of this instance's messages

	mu         sync.Mutex
	next       *batch // takes operations; nil: no message is waiting
	publishing bool   // by a goroutine, one message at a time

	// owed: others may have missed something, and have to empty their caches. live: there is a
	// subscription.
	owed, live atomic.Bool

	published, failed, received, emptied atomic.Uint64
}

// New returns a bus for a cache, which may be a namespace. All instances on the same channel must
// cache the same data. New panics if cache or transport is nil. It starts no goroutine: call
// [Bus.Run] next.
func New(cache *ringcache.Cache, transport Transport, options Options) *Bus {
	if cache == nil || transport == nil {
		panic("ringbus: make bus: cache or transport is nil")
	}
	if options.MaxStale <= 0 {
		options.MaxStale = time.Second
	}
	b := &bus{whole: cache, transport: transport, options: options}
	b.head[0] = version
	_, _ = rand.Read(b.head[1:]) // never fails
	return &Bus{b, cache, string(appendOp(nil, opAll, nil))}
}

// Namespace returns a bus whose Del and Reset apply to the namespace with that name
// ([ringcache.Cache.Namespace]). Instances without that namespace ignore them. After DropNamespace,
// call Namespace again. Run and Stats are those of the whole bus. Messages contain the name, so it
// should be short. Namespace panics in a namespace.
func (b *Bus) Namespace(name string) *Bus {
	return &Bus{b.bus, b.cache.Namespace(name), string(appendOp(nil, opNamespace, []byte(name)))}
}

// Del removes keys from the caches of all instances: it publishes them, waits until the transport
// has accepted them, and removes them from this cache. Write the database first. Concurrent calls
// may share messages; many keys need several.
//
// Whatever Del returns, it has removed the keys from this cache. After an error, other instances
// may keep them until a message gets through; Run goes on trying to send one. If ctx ends first,
// Del returns its error, wrapped.
func (b *Bus) Del(ctx context.Context, keys ...[]byte) error {
	err := b.tell(ctx, opDelete, keys)
	for _, key := range keys {
		b.cache.Del(key)
	}
	return err
}

// Reset removes all entries, or those of the namespace, from the caches of all instances, in the
// order of [Bus.Del] and with its errors.
func (b *Bus) Reset(ctx context.Context) error {
	err := b.tell(ctx, opReset, [][]byte{nil})
	b.cache.Reset()
	return err
}

// Stats returns the counters of the bus.
func (b *Bus) Stats() Stats {
	return Stats{b.live.Load(),
		b.published.Load(), b.failed.Load(), b.received.Load(), b.emptied.Load()}
}

// batch is a message that takes operations while the one before it is being published. So there are
// at most two, and callers wait when both are full.
type batch struct {
	data   []byte
	target string        // of the last operation
	done   chan struct{} // closed when err is set
	err    error
}

// tell publishes an operation with each of some data, and waits until the messages are published.
func (b *Bus) tell(ctx context.Context, op byte, data [][]byte) (err error) {
	for len(data) > 0 && err == nil {
		var m *batch
		m, data = b.join(op, data)
		select {
		case <-m.done:
			err = m.err
		case <-ctx.Done():
			err = ctx.Err()
			if len(data) > 0 {
				b.owed.Store(true)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("ringbus: publish message: %w", err)
	}
	return nil
}

// join adds operations to the next message until it is full, and returns it and the rest of the
// data.
func (b *Bus) join(op byte, data [][]byte) (m *batch, rest [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = &batch{data: bytes.Clone(b.head[:]), done: make(chan struct{})}
	}
	if !b.publishing {
		b.publishing = true
		go b.publish()
	}
	m = b.next
	for ; len(data) > 0 && len(m.data) < fullSize; data = data[1:] {
		if m.target != b.target {
			m.target, m.data = b.target, append(m.data, b.target...)
		}
		if len(data[0]) <= maxKey { // no cache has a longer one
			m.data = appendOp(m.data, op, data[0])
		}
	}
	return m, data
}

// publish publishes one message after another until there is none.
func (b *bus) publish() {
	for {
		b.mu.Lock()
		m := b.next
		b.next, b.publishing = nil, m != nil
		b.mu.Unlock()
		if m == nil {
			return
		}
		m.err = b.send(m.data)
		close(m.done)
	}
}

// send publishes a message, or if others may have missed one, tells them to remove everything.
func (b *bus) send(message []byte) error {
	if b.owed.Swap(false) {
		message = appendOp(bytes.Clone(b.head[:]), opReset, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := b.transport.Publish(ctx, message)
	if err != nil {
		b.owed.Store(true)
		b.failed.Add(1)
		return err
	}
	b.published.Add(1)
	return nil
}
