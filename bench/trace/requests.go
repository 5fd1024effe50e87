package trace

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Request is one line of a trace.
type Request struct {
	Key  uint32 // dense id, counted from 0 in the order of first appearance
	Size uint32 // the object's size in bytes; 0 where the trace has none
}

// loadRequests reads the gzip-compressed trace file at path whole.
func loadRequests(path string) ([]Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: open trace: %w", err)
	}
	defer f.Close()
	reqs, err := readRequests(f)
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, path)
	}
	return reqs, nil
}

// readRequests reads a gzip-compressed trace: one request a line, written
// key_id,size_bytes. Empty lines are skipped.
func readRequests(r io.Reader) ([]Request, error) {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("trace: read trace: %w", err)
	}
	defer zr.Close()
	var reqs []Request
	lines := bufio.NewScanner(zr)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		req, err := parseRequest(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("trace: read trace: line %d: %w", n, err)
		}
		reqs = append(reqs, req)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: read trace: %w", err)
	}
	return reqs, nil
}

func parseRequest(line string) (Request, error) {
	key, size, ok := strings.Cut(line, ",")
	if !ok {
		return Request{}, fmt.Errorf("no comma in %q", line)
	}
	k, err := strconv.ParseUint(key, 10, 32)
	if err != nil {
		return Request{}, fmt.Errorf("key id: %w", err)
	}
	s, err := strconv.ParseUint(size, 10, 32)
	if err != nil {
		return Request{}, fmt.Errorf("size: %w", err)
	}
	return Request{Key: uint32(k), Size: uint32(s)}, nil
}
