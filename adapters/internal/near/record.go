package near

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/ringcache/ringcache"
)

// records are the replies in the cache. An invalidation names a key, and all commands of
// the key have to go with it, so there is one *main* record for each key. Most keys are
// read by one command: the main record has its reply. Replies to others are in *side*
// records, which count only as long as the main record is there with the same version.
//
//	main: view   | key        ->  length of cmd | cmd | version | reply
//	side: view+1 | key | cmd  ->                        version | reply
//
// No two main records of a store have the same version. So to delete the main record is to
// delete all of the key, and what the cache evicts by itself can only make more disappear.
// Nor is a side record taken for that of another key with the same letters in key and cmd.
type records struct {
	cache       *ringcache.Cache
	lastVersion uint64 // of a main record; guarded by the store's mutex
}

const (
	versionSize = 8
	expirySize  = 7 // the head of a reply (see Message)

	// Keys up to about this length are put together on the stack.
	keyRoom = 256

	// The cache's clock goes in steps, and an entry may go by one too early. The exact
	// time is in the reply.
	clockStep = 100 * time.Millisecond
)

// get returns a copy of the reply to cmd of key, if there is one that has not expired at
// now. If it is again called for the same lookup of the user's, that does not count as one of
// the cache.
func (r *records) get(
	view uint64, key, cmd string, now time.Time, again bool,
) (reply []byte, ok bool) {
	var room [keyRoom]byte
	rec, ok := r.read(appendMainKey(room[:0], view, key), again)
	if !ok {
		return nil, false
	}
	mainCmd, body, ok := cutCmd(rec)
	if !ok {
		return nil, false
	}
	if string(mainCmd) != cmd {
		version := body[:versionSize]
		side := appendSideKey(room[:0], view, key, cmd)
		// An Update that changes nothing is a read that does not count in Stats.
		_ = r.cache.Update(side, func(e *ringcache.Entry[[]byte]) {
			body, ok = append([]byte(nil), e.Value...), e.Present
		})
		if !ok && !again {
			r.cache.Has(side) // the main record has counted as a hit
		}
		if !ok || !bytes.HasPrefix(body, version) {
			return nil, false
		}
	}
	reply = body[versionSize:]
	return reply, expiry(reply) > now.UnixMilli()
}

// expiry returns when a reply expires, in ms of Unix time.
func expiry(reply []byte) (pxat int64) {
	if len(reply) < expirySize {
		return 0
	}
	for i := range expirySize {
		pxat |= int64(reply[i]) << (8 * i)
	}
	return pxat
}

func (r *records) read(k []byte, again bool) ([]byte, bool) {
	if again {
		return r.cache.Peek(nil, k)
	}
	return r.cache.HasGet(nil, k)
}

// set stores a reply for ttl. The cache may refuse it; then it is not there. The store
// must be locked.
func (r *records) set(view uint64, key string, rec record, ttl time.Duration) {
	if ttl <= 0 {
		return
	}
	ttl += clockStep
	var room [keyRoom]byte
	k := appendMainKey(nil, view, key)
	old, _ := r.cache.Peek(nil, k)
	cmd, body, ok := cutCmd(old)
	switch {
	case !ok:
		r.lastVersion++
		binary.BigEndian.PutUint64(rec.body(), r.lastVersion)
		_ = r.cache.SetWithTTL(k, rec.bytes, ttl)
	case string(cmd) == rec.cmd:
		copy(rec.body(), body[:versionSize])
		_ = r.cache.SetWithTTL(k, rec.bytes, ttl)
	default:
		copy(rec.body(), body[:versionSize])
		_ = r.cache.SetWithTTL(appendSideKey(room[:0], view, key, rec.cmd), rec.body(), ttl)
		// The main record has to be there as long as any of its side records.
		if left, ok := r.cache.TTL(k); ok && left < ttl {
			r.cache.Touch(k, ttl)
		}
	}
}

// del removes all replies for key. The store must be locked.
func (r *records) del(view uint64, key string) {
	var room [keyRoom]byte
	r.cache.Del(appendMainKey(room[:0], view, key))
}

// record is a reply in the form of a main record, without its version.
type record struct {
	cmd   string
	bytes []byte
	at    int // where version and reply begin in bytes
}

// body is what a side record has of it.
func (r record) body() []byte { return r.bytes[r.at:] }

// newRecord returns the record of a reply that expires at pxat, and the reply with that
// expiry, which refers to the record. It returns false, and the reply as it is, if this
// version of the client has another form of replies.
func newRecord[M any, P Message[M]](cmd string, val M, pxat int64) (record, M, bool) {
	r := record{cmd: cmd}
	size := binary.MaxVarintLen64 + len(cmd) + versionSize + P(&val).CacheSize()
	b := binary.AppendUvarint(make([]byte, 0, size), uint64(len(cmd)))
	b = append(b, cmd...)
	r.at = len(b)
	b = append(b, make([]byte, versionSize)...)
	at := len(b)
	b = P(&val).CacheMarshal(b)
	if len(b) < at+expirySize {
		return r, val, false
	}
	for i := range expirySize {
		b[at+i] = byte(pxat >> (8 * i))
	}
	var msg M
	if P(&msg).CacheUnmarshalView(b[at:]) != nil || P(&msg).CachePXAT() != pxat {
		return r, val, false
	}
	r.bytes = b
	return r, msg, true
}

// cutCmd parses a main record.
func cutCmd(rec []byte) (cmd, body []byte, ok bool) {
	n, used := binary.Uvarint(rec)
	if used <= 0 || n > uint64(len(rec)) || len(rec)-used-int(n) < versionSize {
		return nil, nil, false
	}
	rec = rec[used:]
	return rec[:n], rec[n:], true
}

func appendMainKey(dst []byte, view uint64, key string) []byte {
	return append(binary.BigEndian.AppendUint64(dst, view), key...)
}

func appendSideKey(dst []byte, view uint64, key, cmd string) []byte {
	dst = binary.BigEndian.AppendUint64(dst, view+1)
	return append(append(dst, key...), cmd...)
}
