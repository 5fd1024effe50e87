package ringmiddleware

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// recorder is the ResponseWriter of the handler. It decides by the header how to treat the
// response. A response that may be stored is buffered until it is complete, so that a slow client
// does not delay other requests, and it can be served like a stored one. All others pass through.
type recorder struct {
	http.ResponseWriter // of the client
	m                   *Middleware
	q                   *query
	begun               time.Time
	old                 *found // what may be served should the handler fail; nil: nothing
	why                 string // the handler was asked, in the words of Cache-Status

	// unshared is called as soon as it is known that waiting requests must not get the response.
	// It may be called more than once.
	unshared func()

	header http.Header // of the handler, which may go on changing it
	sent   http.Header // what it was when the response began
	code   int         // 0: it has not answered yet
	state  state
	kept   bool   // a copy is made of what passes, since the handler says that it may be
	broken bool   // the handler could not make the whole response
	failed bool   // what is old takes the place of the response
	entry  entry  // of what is held or kept, but for header and body
	body   []byte // what is held, or a copy of what has passed
}

// state is what becomes of what the handler writes.
type state int

const (
	undecided state = iota
	held            // until the handler is done
	passing         // to the client
	dropped         // another answer takes its place
	hijacked
)

// failures are the status codes that stale-if-error is about (RFC 5861).
var failures = []int{http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// Unwrap lets http.ResponseController find what else the writer can do.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// Header returns the handler's header. It is not the client's, which has what handlers before
// this one have set, for their client alone.
func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader decides what becomes of the response.
func (rec *recorder) WriteHeader(code int) {
	switch {
	case rec.code != 0: // a mistake, which the server is to report
		if rec.state == passing {
			rec.ResponseWriter.WriteHeader(code)
		}
		return
	case code < 200 && code != http.StatusSwitchingProtocols: // a forerunner of the answer
		rec.forerun(code)
		return
	}
	rec.code = code
	rec.sent = canonical(rec.header)
	e, said, ok := rec.m.judge(code, rec.sent, time.Since(rec.begun))
	length, _ := strconv.Atoi(rec.sent.Get("Content-Length"))
	switch {
	case ok && e.audience >= rec.q.from && length <= rec.m.options.MaxBody:
		rec.state, rec.entry, rec.kept = held, e, said
		rec.body = make([]byte, 0, max(0, length))
	case rec.old != nil && slices.Contains(failures, code):
		rec.state, rec.failed = dropped, true
	default:
		rec.pass()
	}
}

// forerun sends an answer of 1xx. Its header is not that of the answer that follows.
func (rec *recorder) forerun(code int) {
	header := rec.ResponseWriter.Header()
	before := maps.Clone(header)
	copyHeader(header, rec.header)
	rec.ResponseWriter.WriteHeader(code)
	clear(header)
	maps.Copy(header, before)
}

// pass sends the client what there is of the response, and lets the rest through.
func (rec *recorder) pass() {
	rec.unshared()
	rec.state = passing
	header := rec.ResponseWriter.Header()
	copyHeader(header, rec.sent)
	rec.m.addStatus(header, "fwd="+rec.why+"; fwd-status="+strconv.Itoa(rec.code))
	if rec.code == http.StatusOK && !rec.kept && clientHas(rec.q.r.Header, rec.sent) {
		rec.state = dropped // the handler was asked for the whole response
		for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding"} {
			header.Del(name)
		}
		rec.ResponseWriter.WriteHeader(http.StatusNotModified)
		return
	}
	rec.ResponseWriter.WriteHeader(rec.code)
	if len(rec.body) > 0 {
		if _, err := rec.ResponseWriter.Write(rec.body); err != nil {
			rec.kept = false
		}
	}
	if !rec.kept {
		rec.body = nil
	}
}

// drop gives the copy up.
func (rec *recorder) drop() { rec.kept, rec.body = false, nil }

// Write holds back or passes on a part of the body.
func (rec *recorder) Write(p []byte) (int, error) {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.state == held && len(p) > rec.m.options.MaxBody-len(rec.body) {
		rec.kept = false
		rec.pass()
	}
	switch rec.state {
	case hijacked:
		return 0, http.ErrHijacked
	case dropped:
		return len(p), nil
	case held:
		if rec.code == http.StatusNoContent {
			return 0, http.ErrBodyNotAllowed
		}
		rec.body = append(rec.body, p...)
		return len(p), nil
	}
	if rec.kept && len(p) > rec.m.options.MaxBody-len(rec.body) {
		rec.drop()
	}
	n, err := rec.ResponseWriter.Write(p)
	switch {
	case err != nil:
		rec.drop() // the handler may leave out the rest
	case rec.kept:
		rec.body = append(rec.body, p...)
	}
	return n, err
}

// ReadFrom lets a large body go from a file to a socket without a copy.
func (rec *recorder) ReadFrom(src io.Reader) (int64, error) {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.state == passing && !rec.kept {
		return io.Copy(rec.ResponseWriter, src)
	}
	return io.Copy(struct{ io.Writer }{rec}, src)
}

// Flush is FlushError without an error.
func (rec *recorder) Flush() { _ = rec.FlushError() }

// FlushError sends what there is. Nobody else waits for such a response, which may go on for
// long. It is kept only if the handler itself has said that it may be.
func (rec *recorder) FlushError() error {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.state == held {
		rec.pass()
	}
	if rec.state != passing {
		return nil
	}
	return http.NewResponseController(rec.ResponseWriter).Flush()
}

// Hijack hands the connection over.
func (rec *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil {
		rec.unshared()
		rec.state, rec.code = hijacked, http.StatusSwitchingProtocols
		rec.drop()
	}
	return conn, rw, err
}

// finish is called when the handler has returned, which need not have written anything. It
// returns what is to be kept, nil for nothing. What was held and is not to be kept is sent.
func (rec *recorder) finish(ctx context.Context) *found {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	trailers := rec.trailers()
	// A handler whose request has ended may have left out the rest.
	whole := !rec.broken && ctx.Err() == nil && len(trailers) == 0 && rec.complete()
	switch {
	case rec.state == held && whole, rec.state == passing && rec.kept && whole:
		return rec.found()
	case rec.state == held:
		rec.pass()
	}
	if rec.state == passing {
		header := rec.ResponseWriter.Header()
		for _, name := range trailers {
			header[name] = rec.header[name]
		}
	}
	return nil
}

// trailers returns the names of headers that follow the body.
func (rec *recorder) trailers() []string {
	var names []string
	for _, name := range list(rec.sent.Values("Trailer")) {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	for name := range rec.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			names = append(names, name)
		}
	}
	return names
}

// complete reports whether the body has the length that was announced.
func (rec *recorder) complete() bool {
	length := rec.sent.Get("Content-Length")
	return length == "" || length == strconv.Itoa(len(rec.body))
}

// found returns the response as it is kept: with what the server would add to it, and an ETag.
func (rec *recorder) found() *found {
	header := rec.sent
	age := ageOf(header, time.Since(rec.begun)) // it may have taken long since the header
	if header.Get("Date") == "" {
		header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	_, typed := header["Content-Type"]
	if !typed && header.Get("Content-Encoding") == "" && len(rec.body) > 0 {
		header.Set("Content-Type", http.DetectContentType(rec.body))
	}
	if rec.code == http.StatusOK && header.Get("ETag") == "" {
		sum := sha256.Sum256(rec.body)
		header.Set("ETag", fmt.Sprintf(`"%x"`, sum[:12]))
	}
	f := &found{entry: rec.entry, now: age}
	f.age = age
	f.header, f.body = fieldsOf(header), rec.body
	return f
}

// copyHeader gives dst the fields of src, in place of its own of the same names; but Vary and
// Set-Cookie take in both, since a handler before this one may choose by other headers, and set
// its own cookies.
func copyHeader(dst, src http.Header) {
	for name, values := range src {
		if name == "Vary" || name == "Set-Cookie" {
			all := slices.Clone(dst[name])
			for _, value := range values {
				if !slices.Contains(all, value) {
					all = append(all, value)
				}
			}
			values = all
		}
		dst[name] = values
	}
}
