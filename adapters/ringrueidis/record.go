package ringrueidis

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/redis/rueidis"

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
	ttlSize     = 7 // the head of a reply, as rueidis writes it

	// Keys up to about this length are put together on the stack.
	keyRoom = 256

	// The cache's clock goes in steps, and an entry may go by one too early. The exact
	// time is in the reply.
	clockStep = 100 * time.Millisecond
)

// get returns the reply to cmd of key, if there is one that has not expired at now. If it is
// again called for the same lookup of the user's, that does not count as one of the cache.
func (r *records) get(
	view uint64, key, cmd string, now time.Time, again bool,
) (msg rueidis.RedisMessage, ok bool) {
	var room [keyRoom]byte
	rec, ok := r.read(appendMainKey(room[:0], view, key), again)
	if !ok {
		return msg, false
	}
	mainCmd, body, ok := cutCmd(rec)
	if !ok {
		return msg, false
	}
	if string(mainCmd) != cmd {
		version := body[:versionSize]
		side := appendSideKey(room[:0], view, key, cmd)
		if body, ok = r.cache.HasGetUncounted(nil, side); !ok && !again {
			r.cache.Has(side) // the main record has counted as a hit
		}
		if !ok || !bytes.HasPrefix(body, version) {
			return msg, false
		}
	}
	// The message refers to body, which is a copy that nobody else has.
	if msg.CacheUnmarshalView(body[versionSize:]) != nil || msg.CachePXAT() <= now.UnixMilli() {
		return rueidis.RedisMessage{}, false
	}
	return msg, true
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
	at    int                  // where version and reply begin in bytes
	msg   rueidis.RedisMessage // of bytes
}

// body is what a side record has of it.
func (r record) body() []byte { return r.bytes[r.at:] }

// newRecord returns the record of a reply that expires at pxat. It returns false, and the
// reply as it is, if this version of rueidis has another form of replies.
func newRecord(cmd string, val *rueidis.RedisMessage, pxat int64) (record, bool) {
	r := record{cmd: cmd, msg: *val}
	size := binary.MaxVarintLen64 + len(cmd) + versionSize + val.CacheSize()
	b := binary.AppendUvarint(make([]byte, 0, size), uint64(len(cmd)))
	b = append(b, cmd...)
	r.at = len(b)
	b = append(b, make([]byte, versionSize)...)
	reply := len(b)
	b = val.CacheMarshal(b)
	if len(b) < reply+ttlSize {
		return r, false
	}
	for i := range ttlSize {
		b[reply+i] = byte(pxat >> (8 * i))
	}
	var msg rueidis.RedisMessage
	if msg.CacheUnmarshalView(b[reply:]) != nil || msg.CachePXAT() != pxat {
		return r, false
	}
	r.bytes, r.msg = b, msg
	return r, true
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
