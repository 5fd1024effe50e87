// Package payload makes values of real content for measurements of compression: pieces of the
// JSON files that come with Go, records of protocol buffers, or random bytes.
package payload

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Kinds are the kinds of content.
var Kinds = []string{"json", "proto", "random"}

// The pool of JSON is made of files of up to mostFile.
const (
	mostFile  = 2 << 20
	leastPool = 1 << 18
)

// Payload makes values, without allocating, for one goroutine. Equal ids have equal values.
type Payload struct {
	kind  string
	pool  []byte
	pcg   rand.PCG
	rand  *rand.Rand // of pcg
	field []byte     // a buffer
}

// New returns a Payload of one of Kinds.
func New(kind string) (*Payload, error) {
	p := &Payload{kind: kind}
	p.rand = rand.New(&p.pcg)
	switch kind {
	case "proto", "random":
	case "json":
		p.pool = gather()
		if len(p.pool) < leastPool {
			return nil, fmt.Errorf("payload: gather JSON files: %d bytes, want %d", len(p.pool), leastPool)
		}
	default:
		return nil, fmt.Errorf("payload: kind %q, known are %s", kind, strings.Join(Kinds, ", "))
	}
	return p, nil
}

// gather joins the JSON files that come with Go, each content once.
func gather() (pool []byte) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	_ = filepath.WalkDir(strings.TrimSpace(string(root)),
		func(path string, d fs.DirEntry, err error) error {
			name := strings.TrimSuffix(path, ".zst")
			if err != nil || d.IsDir() || filepath.Ext(name) != ".json" {
				return nil // what cannot be read is left out
			}
			if b := content(path); !seen[string(b)] {
				seen[string(b)] = true
				pool = append(pool, b...)
			}
			return nil
		})
	return pool
}

// content returns what a file has, without its indentation, as services send it. It is empty
// if the file is of another kind, too long, or damaged.
func content(path string) []byte {
	b, err := os.ReadFile(path)
	if err != nil || len(b) > mostFile {
		return nil
	}
	if strings.HasSuffix(path, ".zst") {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil
		}
		defer r.Close()
		if b, err = r.DecodeAll(b, nil); err != nil {
			return nil
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, b) != nil {
		return nil
	}
	return compact.Bytes()
}

// Fill fills dst with the value of id. Two ids share bytes by chance: where their pieces of
// the pool overlap.
func (p *Payload) Fill(dst []byte, id uint64) {
	p.pcg.Seed(id, 0x5bd1e9955bd1e995)
	switch p.kind {
	case "proto":
		p.fillProto(dst)
	case "random":
		for at := 0; at < len(dst); at += 8 {
			p.field = binary.LittleEndian.AppendUint64(p.field[:0], p.pcg.Uint64())
			copy(dst[at:], p.field)
		}
	default:
		at := p.rand.IntN(len(p.pool))
		for n := 0; n < len(dst); at = 0 {
			n += copy(dst[n:], p.pool[at:])
		}
	}
}

// words are what the strings of records are made of.
var words = strings.Fields(`
	account active address alpha amount archive balance batch beta branch cancel card
	client closed code confirmed country credit customer date daily debit delivery
	discount email east error express failed first gateway gold group high hour inactive
	invoice item last limit local market member monthly name network north open order
	paid partner pending phone premium price product profile purchase queue region
	refund regular report retail service session shipped silver south standard status
	stock store street success tax team trial type unit user verified vendor west zone
`)

// fillProto fills dst with fields of an order as protocol buffers encode them: numbers,
// times, strings, and lines of items. The last one may be cut off.
func (p *Payload) fillProto(dst []byte) {
	b, r := dst[:0:len(dst)], p.rand
	for field := uint64(1); len(b) < len(dst); field = field%14 + 1 {
		f := p.field[:0]
		switch field % 3 {
		case 0: // a number
			f = binary.AppendUvarint(f, field<<3)
			f = binary.AppendUvarint(f, r.Uint64N(1<<(8+r.IntN(24))))
		case 1: // a string
			first, second := words[r.IntN(len(words))], words[r.IntN(len(words))]
			f = binary.AppendUvarint(f, field<<3|2)
			f = binary.AppendUvarint(f, uint64(len(first)+1+len(second)))
			f = append(append(append(f, first...), '-'), second...)
		default: // a time
			f = binary.AppendUvarint(f, field<<3|1)
			f = binary.LittleEndian.AppendUint64(f, 1_760_000_000_000+r.Uint64N(1<<32))
		}
		b = append(b, f[:min(len(f), len(dst)-len(b))]...)
		p.field = f
	}
}
