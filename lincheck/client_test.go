package lincheck

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ringcache/ringcache"
)

// recorder makes one history: a few clients on a few keys that no other
// history uses.
type recorder struct {
	store   store
	round   uint32
	large   bool // half of the values are large
	clock   atomic.Int64
	clients [clients]*client
}

// client is one goroutine of a recorder.
type client struct {
	*recorder
	id      int
	rnd     *rand.Rand
	version uint64
	last    [keysAtOnce][]byte // the value that was last read or written
	room    []byte             // to read into
	ops     []porcupine.Operation
}

// newRecorder returns the recorder of one round.
func newRecorder(s store, seed uint64, round uint32, large bool) *recorder {
	r := &recorder{store: s, round: round, large: large}
	for id := range r.clients {
		c := &client{recorder: r, id: id, rnd: rand.New(rand.NewPCG(seed, uint64(id)))}
		c.room = make([]byte, 3*longestValue)
		r.clients[id] = c
	}
	return r
}

// run has each client make n calls more.
func (r *recorder) run(n int) error {
	var errs [clients]error
	var wg sync.WaitGroup
	for id, c := range r.clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range n {
				if errs[id] = c.step(); errs[id] != nil {
					return
				}
			}
		}()
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// history returns all calls.
func (r *recorder) history() (all []porcupine.Operation) {
	for _, c := range r.clients {
		all = append(all, c.ops...)
	}
	return all
}

func (c *client) key(id uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, c.round)
	return binary.LittleEndian.AppendUint32(b, id)
}

// step makes one call and notes it.
func (c *client) step() error {
	id := c.rnd.Uint32N(keysAtOnce)
	k := c.key(id)
	in := input{key: id}
	var out output
	var err error
	begin := c.clock.Add(1)
	switch x := c.rnd.IntN(36); {
	case x >= 30:
		return c.load(begin, id, k)
	case x >= 20:
		return c.compound(begin, id, k)
	case x < 7:
		in.kind, in.version = set, c.next()
		c.last[id] = c.makeValue(in)
		err = c.store.Set(k, c.last[id])
	case x < 10:
		in.kind = del
		out.found = c.store.Del(k)
	case x < 11:
		in.kind = has
		out.found = c.store.Has(k)
	case x < 13:
		return c.batch(begin)
	case x < 15:
		in.kind = read
		var v []byte
		if v, _, out.found = c.store.GetWithTTL(c.dst(), k); out.found {
			out.version, err = readValue(v, id)
		}
	case x < 17:
		in.kind = read
		dst := c.dst()
		v := c.store.Get(dst, k)
		if out.found = len(v) > len(dst); out.found { // no value here is empty
			out.version, err = readValue(v, id)
		}
	default:
		in.kind = read
		var v []byte
		if v, out.found = c.store.HasGet(c.dst(), k); out.found {
			out.version, err = readValue(v, id)
			c.last[id] = bytes.Clone(v)
		}
	}
	c.note(in, out, begin, c.clock.Add(1))
	return err
}

// dst returns nil, or a buffer with room for every value, or for some.
func (c *client) dst() []byte {
	switch c.rnd.IntN(3) {
	case 0:
		return nil
	case 1:
		return c.room[:0:500]
	}
	return c.room[:0]
}

// next returns a version that no other write has.
func (c *client) next() uint64 {
	c.version++
	return uint64(c.id+1)<<32 | c.version
}

// compound makes a call that looks and writes at once.
func (c *client) compound(begin int64, id uint32, k []byte) error {
	in := input{key: id, version: c.next()}
	var out output
	var err error
	v := c.makeValue(in)
	if old, bad := readValue(c.last[id], id); bad == nil {
		in.old = old
	}
	switch c.rnd.IntN(5) {
	case 0:
		in.kind = put
		var was []byte
		if was, out.found, err = c.store.SetIfAbsent(c.dst(), k, v, time.Hour); !out.found {
			var bad error
			out.version, bad = readValue(was, id)
			err = errors.Join(err, bad)
		}
	case 1:
		in.kind = change
		if in.old != absent {
			in.version, v = in.old, c.last[id]
		}
		out.found, err = c.store.SetIfChanged(k, v)
	case 2:
		in.kind = swap
		out.found, err = c.store.CompareAndSwap(k, c.last[id], v)
	case 3:
		in.kind = update
		var bad error
		err = c.store.update(k, func(old []byte, ok bool) []byte {
			if out = (output{found: ok}); ok {
				out.version, bad = readValue(old, id)
			}
			return v
		})
		err = errors.Join(err, bad)
	default:
		in.kind = take
		var got []byte
		if got, out.found = c.store.GetAndDel(nil, k); out.found {
			out.version, err = readValue(got, id)
		}
	}
	if in.kind != take && (out.found || in.kind == update) {
		c.last[id] = v
	}
	c.note(in, out, begin, c.clock.Add(1))
	return err
}

// load reads a key, alone or as a batch, and loads it if it is not there, or waits for
// another that does. Loads take their time, so that writes come meanwhile.
func (c *client) load(begin int64, id uint32, k []byte) error {
	in := input{kind: load, key: id, version: c.next()}
	var out output
	v, gone, rest := c.makeValue(in), c.rnd.IntN(4) == 0, c.rnd.IntN(20)
	get := c.store.GetOrLoad
	if c.rnd.IntN(2) == 0 {
		get = c.getBatchOfOne
	}
	got, err := get(context.Background(), nil, k,
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			out.loaded = !gone
			for range rest {
				runtime.Gosched()
			}
			if gone {
				return nil, time.Hour, ringcache.ErrAbsent
			}
			return v, time.Hour, nil
		})
	switch {
	case err == nil:
		out.found = true
		out.version, err = readValue(got, id)
		c.last[id] = got
	case errors.Is(err, ringcache.ErrAbsent):
		err = nil
	}
	c.note(in, out, begin, c.clock.Add(1))
	return err
}

// getBatchOfOne is GetOrLoad by GetOrLoadBatch.
func (c *client) getBatchOfOne(
	ctx context.Context, _, k []byte, load ringcache.LoadFunc[[]byte, []byte],
) ([]byte, error) {
	var vals [1][]byte
	_, _, err := c.store.GetOrLoadBatch(ctx, nil, [][]byte{k}, vals[:],
		func(ctx context.Context, keys [][]byte) ([]ringcache.Loaded[[]byte], error) {
			v, ttl, err := load(ctx, keys[0])
			return []ringcache.Loaded[[]byte]{{Value: v, TTL: ttl, Err: err}}, nil
		})
	if err == nil && vals[0] == nil {
		err = ringcache.ErrAbsent
	}
	return vals[0], err
}

// batch reads all keys at once: as many reads, each at its own instant.
func (c *client) batch(begin int64) error {
	keys := make([][]byte, keysAtOnce)
	for i := range keys {
		keys[i] = c.key(uint32(i))
	}
	vals := make([][]byte, len(keys))
	c.store.GetBatch(c.dst(), keys, vals)
	end := c.clock.Add(1)
	for i, v := range vals {
		out := output{found: v != nil}
		if out.found {
			var err error
			if out.version, err = readValue(v, uint32(i)); err != nil {
				return err
			}
		}
		c.note(input{kind: read, key: uint32(i)}, out, begin, end)
	}
	return nil
}

func (c *client) note(in input, out output, begin, end int64) {
	c.ops = append(c.ops,
		porcupine.Operation{ClientId: c.id, Input: in, Output: out, Call: begin, Return: end})
}

// longestValue is the longest value here, large enough for a ringcache of the smallest
// size to keep it in another place than small ones.
const longestValue = 8 * 3000

// makeValue returns a value that carries key and version in each of its words.
func (c *client) makeValue(in input) []byte {
	words := 1 + c.rnd.IntN(20)
	if c.large && c.rnd.IntN(2) == 0 {
		words = longestValue/8 - c.rnd.IntN(2000)
	}
	b := make([]byte, 0, words*8)
	for range words {
		b = binary.LittleEndian.AppendUint64(b, in.version<<8|uint64(in.key))
	}
	return b
}

// readValue returns the version of a value, or an error if it is not whole.
func readValue(v []byte, key uint32) (uint64, error) {
	if len(v) < 8 || len(v)%8 != 0 {
		return 0, fmt.Errorf("key %d: a value of %d bytes", key, len(v))
	}
	first := binary.LittleEndian.Uint64(v)
	for at := 0; at < len(v); at += 8 {
		if w := binary.LittleEndian.Uint64(v[at:]); w != first {
			return 0, fmt.Errorf("key %d: a mixture: %x at 0, %x at %d of %d", key, first, w, at, len(v))
		}
	}
	if uint32(first&0xff) != key {
		return 0, fmt.Errorf("key %d: the value of key %d", key, first&0xff)
	}
	return first >> 8, nil
}

// press sets other keys until stop is closed, so that entries are evicted
// while the histories run.
func press(c *ringcache.Cache, large bool, stop <-chan struct{}) {
	rnd := rand.New(rand.NewPCG(99, 0))
	value := make([]byte, 100_000)
	for n := uint64(0); ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		size := rnd.IntN(200)
		if large {
			size = rnd.IntN(2000)
		}
		if large && n%4 == 0 {
			size = rnd.IntN(len(value))
		}
		_ = c.Set(binary.LittleEndian.AppendUint64([]byte("press"), n), value[:size])
		if n%256 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
