package ringmiddleware

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
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
	ctx                 context.Context // of the call: ends when nobody wants the response any more
	begun               time.Time
	old                 *found // that the handler may say is unchanged, or nil
	why                 string // reason for the call, in the terms of Cache-Status

	// end is called as soon as it is known what waiting requests get instead of the response. Only
	// the first call has an effect.
	end  func(*outcome)
	late *time.Timer // calls end if the rest of a response that passes takes too long, or nil

	header http.Header // of the handler, which may still modify it
	sent   http.Header // its copy from when the response began
	code   int         // 0: the response has not begun
	state  state
	kept   bool   // a response that passes is copied, to be stored at its end
	broken bool   // the handler has aborted the response
	entry  entry  // of a response that is held or kept, without header and body
	body   []byte // the held body, or a copy of the one that passes

	unchanged bool // old is sent, with the header of the response, which is a 304
	failed    bool // old is sent instead of the response
}

// state says where the response goes.
type state int

const (
	undecided state = iota
	held            // to a buffer, until the handler has returned
	passing         // to the client
	dropped         // nowhere, since another response is sent instead
	hijacked
)

// failures are the status codes that count as errors for stale-if-error (RFC 5861).
var failures = []int{http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// Unwrap is for http.ResponseController.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// Header returns the handler's header. It is separate from that of the underlying writer, which
// contains what outer handlers have set for this client alone.
func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader decides how the response is treated.
func (rec *recorder) WriteHeader(code int) {
	switch {
	case rec.code != 0: // a mistake of the handler, which the server reports
		if rec.state == passing {
			rec.ResponseWriter.WriteHeader(code)
		}
		return
	case code < 200 && code != http.StatusSwitchingProtocols:
		rec.inform(code)
		return
	}
	rec.code = code
	rec.sent = canonical(rec.header)
	if code == http.StatusNotModified && rec.old != nil && rec.old.validator != noValidator {
		rec.state, rec.unchanged = dropped, true
		return
	}
	rec.inherit()
	e, said, ok := rec.m.judge(code, rec.sent, time.Since(rec.begun))
	length, _ := strconv.Atoi(rec.sent.Get("Content-Length"))
	switch {
	case ok && e.audience >= rec.q.from && length <= rec.m.options.MaxBody:
		rec.state, rec.entry, rec.kept = held, e, said
		rec.body = make([]byte, 0, max(0, length))
	case rec.old != nil && rec.old.mayReplaceError() && slices.Contains(failures, code):
		rec.end(&outcome{failure: code})
		rec.state, rec.failed = dropped, true
	default:
		rec.pass()
	}
}

// inherit adds what outer handlers have said of the response for the client: for whom it is, and of
// what type. Compression in front of the cache varies by Accept-Encoding, but this response
// doesn't.
func (rec *recorder) inherit() {
	outer := canonical(rec.ResponseWriter.Header())
	for _, name := range []string{"Cache-Control", "Content-Type"} {
		if _, own := rec.sent[name]; !own && outer[name] != nil {
			rec.sent[name] = outer[name]
		}
	}
	for _, name := range varyNames(outer["Vary"]) {
		if name != "Accept-Encoding" {
			rec.sent.Add("Vary", name)
		}
	}
}

// inform sends an informational response (1xx), whose header is not that of the final one.
func (rec *recorder) inform(code int) {
	header := rec.ResponseWriter.Header()
	before := maps.Clone(header)
	copyHeader(header, rec.header)
	rec.ResponseWriter.WriteHeader(code)
	clear(header)
	maps.Copy(header, before)
}

// pass sends the part of the response that is there to the client, and the rest as it is written.
func (rec *recorder) pass() {
	switch {
	case rec.code >= 500:
		rec.end(&outcome{failure: rec.code})
	case rec.kept:
		rec.late = time.AfterFunc(flushWait, func() { rec.end(nil) })
	default:
		rec.end(nil)
	}
	rec.state = passing
	header := rec.ResponseWriter.Header()
	copyHeader(header, rec.sent)
	rec.m.addStatus(header, "fwd="+rec.why+"; fwd-status="+strconv.Itoa(rec.code))
	if rec.code == http.StatusOK && !rec.kept && clientHas(rec.q.r.Header, rec.sent) {
		rec.state = dropped // the conditions were removed from the handler's request
		for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding"} {
			header.Del(name)
		}
		rec.ResponseWriter.WriteHeader(http.StatusNotModified)
		return
	}
	rec.ResponseWriter.WriteHeader(rec.code)
	if len(rec.body) > 0 { // a client that has gone is noticed later
		_, _ = rec.ResponseWriter.Write(rec.body)
	}
	if !rec.kept {
		rec.body = nil
	}
}

// drop discards the copy, so that the response is not stored.
func (rec *recorder) drop() {
	rec.kept, rec.body = false, nil
	rec.end(nil)
}

// Write buffers or passes on a part of the body.
func (rec *recorder) Write(p []byte) (int, error) {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.code == http.StatusNoContent {
		return 0, http.ErrBodyNotAllowed
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
		rec.body = append(rec.body, p...)
		return len(p), nil
	}
	if rec.kept && len(p) > rec.m.options.MaxBody-len(rec.body) {
		rec.drop()
	}
	if rec.kept {
		rec.body = append(rec.body, p...)
	}
	n, err := rec.ResponseWriter.Write(p)
	if err = rec.unsent(err); err == nil {
		n = len(p)
	}
	return n, err
}

// unsent returns what the handler gets for an error of the client: nil while others may still want
// the response. Otherwise the handler may omit the rest, so the response is not stored.
func (rec *recorder) unsent(err error) error {
	if err != nil && rec.kept && rec.ctx.Err() == nil {
		return nil
	}
	if err != nil {
		rec.drop()
	}
	return err
}

// ReadFrom allows the underlying writer to send a file without copying it.
func (rec *recorder) ReadFrom(src io.Reader) (int64, error) {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.state == passing && !rec.kept {
		return io.Copy(rec.ResponseWriter, src)
	}
	return io.Copy(struct{ io.Writer }{rec}, src)
}

// Flush is like FlushError, but ignores errors.
func (rec *recorder) Flush() { _ = rec.FlushError() }

// flushWait is how long requests wait for the rest of a flushed response that may be stored. A
// reverse proxy flushes most pages, but the client of the first request may be slow.
const flushWait = time.Second

// FlushError makes the response pass, if there is a client. It is stored at its end only if the
// handler itself has set a lifetime; otherwise no other request waits for it any longer.
func (rec *recorder) FlushError() error {
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	_, nobody := rec.ResponseWriter.(*nowhere)
	if rec.state == held && !(nobody && rec.kept) {
		rec.pass()
	}
	if rec.state != passing {
		return nil
	}
	err := http.NewResponseController(rec.ResponseWriter).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return rec.unsent(err)
}

// Hijack lets the handler take over the connection.
func (rec *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil {
		rec.state, rec.code = hijacked, http.StatusSwitchingProtocols
		rec.drop()
	}
	return conn, rw, err
}

// finish must be called when the handler has returned. It returns a response that is to be sent
// unless it has passed, and whether it is to be stored. A held response that is not to be stored is
// sent to the client.
func (rec *recorder) finish() (f *found, keep bool) {
	if rec.late != nil {
		rec.late.Stop()
	}
	if rec.code == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.broken {
		rec.end(&outcome{failure: http.StatusInternalServerError})
	}
	trailers := rec.trailers()
	// A handler whose request was canceled may have omitted the rest.
	whole := !rec.broken && rec.ctx.Err() == nil && len(trailers) == 0 && rec.complete()
	switch {
	case rec.unchanged:
		return rec.renewed()
	case rec.failed:
		rec.old.now += time.Since(rec.begun)
		return rec.old, false
	case rec.state == held && whole, rec.state == passing && rec.kept && whole:
		return rec.found(), true
	case rec.state == held:
		rec.kept = false
		rec.pass()
	}
	if rec.state == passing {
		header := rec.ResponseWriter.Header()
		for _, name := range trailers {
			header[name] = rec.header[name]
		}
	}
	return nil, false
}

// trailers returns the names of the trailers.
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

// complete reports whether the body has the announced length.
func (rec *recorder) complete() bool {
	length := rec.sent.Get("Content-Length")
	return length == "" || length == strconv.Itoa(len(rec.body))
}

// found returns the response to store, with the headers that the server would add, and an ETag. It
// is weak, because an outer handler may encode the body, and ranges of both must not be mixed.
func (rec *recorder) found() *found {
	header := rec.sent
	_, typed := header["Content-Type"]
	if !typed && header.Get("Content-Encoding") == "" && len(rec.body) > 0 {
		header.Set("Content-Type", http.DetectContentType(rec.body))
	}
	if rec.code == http.StatusOK && header.Get("ETag") == "" {
		sum := sha256.Sum256(rec.body)
		header.Set("ETag", fmt.Sprintf(`W/"%x"`, sum[:12]))
	}
	return rec.foundWith(rec.entry, header, rec.body)
}

func (rec *recorder) foundWith(e entry, header http.Header, body []byte) *found {
	f := &found{entry: e, now: ageOf(header, time.Since(rec.begun))} // the body may have taken long
	if header.Get("Date") == "" {
		header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	f.age, f.header, f.body = f.now, fieldsOf(header), body
	return f
}

// ofBody are headers of a 304 that do not replace those of the stored response, whose body they
// would no longer describe.
var ofBody = []string{"Content-Encoding", "Content-Length", "Content-Range", "Content-Type"}

// renewed returns old with the header of the 304 that the handler has sent, and whether that may be
// stored (RFC 9111, sections 3.2 and 4.3.4).
func (rec *recorder) renewed() (f *found, keep bool) {
	old, header := rec.old, rec.old.headers()
	tag, made := header.Get("Etag"), old.validator != tagged
	if got := rec.sent.Get("Etag"); !made && got != "" && !sameTag(got, tag) {
		old.now += time.Since(rec.begun)
		return old, false // it is the answer to this request, and the 304 says nothing about it
	}
	if made {
		delete(header, "Etag")
	}
	delete(header, "Age")
	delete(header, "Date")
	for name, values := range rec.sent {
		if !slices.Contains(ofBody, name) {
			header[name] = values
		}
	}
	e, _, keep := rec.m.judge(old.code, header, time.Since(rec.begun))
	e.code = old.code
	if made && header.Get("Etag") == "" {
		header.Set("Etag", tag)
	}
	return rec.foundWith(e, header, old.body), keep && e.audience >= rec.q.from
}

// copyHeader sets the fields of src in dst. Vary and Set-Cookie are merged, since an outer handler
// may depend on other request headers and set cookies of its own.
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
