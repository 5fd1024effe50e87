package near

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/ringcache/ringcache"
)

// records are the replies in the cache. An invalidation names a key and applies to the replies to
// all of its commands, so each key has one *main* record. Most keys are read by one command, whose
// reply is in the main record. Replies to further commands are in *side* records, which are valid
// only while there is a main record with the same version.
//
//	main: view   | key        ->  length of cmd | cmd | version | reply
//	side: view+1 | key | cmd  ->                        version | reply
//
// No two main records of a store have the same version, so deleting the main record invalidates all
// replies for the key, and an eviction can only cause misses. The version also distinguishes the
// side records of keys whose concatenations with a command are equal.
type records struct {
	cache       *ringcache.Cache
	lastVersion uint64 // of main records; guarded by the store's mutex
}

const (
	versionSize = 8
	expirySize  = 7 // the head of a reply (see Message)

	// Record keys up to this length are on the stack.
	keyRoom = 256

	// An entry may expire one step of the cache's clock early, so it is stored for one step longer.
	// The exact time is in the reply.
	clockStep = 100 * time.Millisecond

	// A longer one would be for ever to the cache, whose TTL is then 0.
	longestTTL = 10 * 365 * 24 * time.Hour
)

// get returns a copy of the reply to cmd of key, if there is one that has not expired at now. With
// again, which means that the caller has looked it up before, the lookup is not counted in the
// statistics of the cache.
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
		body, ok = r.read(appendSideKey(room[:0], view, key, cmd), again)
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

// set stores a reply for ttl, unless the cache refuses it. The store must be locked.
func (r *records) set(view uint64, key string, rec record, ttl time.Duration) {
	if ttl <= 0 {
		return
	}
	ttl = min(ttl, longestTTL) + clockStep
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
		left, _ := r.cache.TTL(k) // the main record must not expire before its side records
		_ = r.cache.SetWithTTL(k, rec.bytes, max(ttl, left))
	default:
		copy(rec.body(), body[:versionSize])
		_ = r.cache.SetWithTTL(appendSideKey(room[:0], view, key, rec.cmd), rec.body(), ttl)
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

// record is a reply as a main record, with room for the version.
type record struct {
	cmd   string
	bytes []byte
	at    int // offset of version and reply in bytes
}

// body returns the value of the side record.
func (r record) body() []byte { return r.bytes[r.at:] }

// newRecord returns the record of a reply that expires at pxat, and the reply with that expiry,
// which shares the record's memory. It returns false and the unchanged reply if this version of the
// client marshals replies differently.
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
