package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// recorder passes a response on to the client, and keeps a copy of it as long
// as it may be stored.
type recorder struct {
	http.ResponseWriter
	status  string        // for Cache-Status
	count   *counts       // of the handler
	request *http.Request // nil: nothing is kept

	code    int         // what was answered; 0: nothing yet
	header  http.Header // a copy, while the response is kept
	body    []byte
	keep    bool
	hasThis bool // the client: it got 304, and gets no body
}

// Unwrap lets http.ResponseController find what else the writer can do.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// WriteHeader decides, from the header alone, what becomes of the response.
func (rec *recorder) WriteHeader(code int) {
	if rec.code != 0 || code < 200 { // a mistake, or a forerunner of the answer
		rec.ResponseWriter.WriteHeader(code)
		return
	}
	rec.code = code
	header := rec.Header()
	if rec.request != nil {
		if rec.keep = mayKeep(rec.request, code, header); rec.keep {
			rec.header = header.Clone()
		}
		rec.hasThis = code == http.StatusOK && clientHas(rec.request.Header, header.Get("ETag"))
	}
	header.Add("Cache-Status", "ringcache; "+rec.status)
	if rec.hasThis {
		rec.count.notModified.Add(1)
		writeNotModified(rec.ResponseWriter)
		return
	}
	rec.ResponseWriter.WriteHeader(code)
}

// Write keeps and passes on a part of the body.
func (rec *recorder) Write(p []byte) (int, error) {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	rec.count.fetched.Add(int64(len(p)))
	if rec.keep {
		rec.body = append(rec.body, p...)
		if len(rec.body) > maxBody {
			rec.drop()
		}
	}
	if rec.hasThis {
		rec.count.spared.Add(int64(len(p)))
		return len(p), nil
	}
	n, err := rec.ResponseWriter.Write(p)
	if err != nil {
		rec.drop() // the handler may leave out the rest
	}
	return n, err
}

// drop gives the copy up.
func (rec *recorder) drop() { rec.keep, rec.header, rec.body = false, nil, nil }

// finish is called after the handler, which need not have written anything.
func (rec *recorder) finish() {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
}

// entry returns what is to be kept of the response, and for how long.
func (rec *recorder) entry() (e entry, ttl time.Duration, ok bool) {
	if !rec.keep || !rec.complete() {
		return entry{}, 0, false
	}
	if rec.code == http.StatusOK && rec.header.Get("ETag") == "" {
		sum := sha256.Sum256(rec.body)
		rec.header.Set("ETag", fmt.Sprintf(`"%x"`, sum[:12]))
	}
	return entry{
		code:     rec.code,
		lifetime: lifetime(rec.header),
		vary:     varyOf(rec.request.Header, rec.header),
		header:   fieldsOf(rec.header),
		body:     rec.body,
	}, freshFor(rec.header), true
}

// complete reports whether the body has the length that was announced.
func (rec *recorder) complete() bool {
	length := rec.header.Get("Content-Length")
	return length == "" || length == strconv.Itoa(len(rec.body))
}
