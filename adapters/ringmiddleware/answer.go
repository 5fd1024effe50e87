package ringmiddleware

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answer sends an entry, and handles conditional and range requests. If age is empty, the handler's
// Age, if any, is sent.
func (m *Middleware) answer(
	w http.ResponseWriter, r *http.Request, f *found, age, status string,
) {
	kept, header := f.headers(), w.Header()
	copyHeader(header, kept)
	if age != "" {
		header.Set("Age", age)
	}
	m.addStatus(header, status)
	if kept["Content-Type"] == nil {
		header["Content-Type"] = nil // prevents detection: the handler wants none, or the body is empty
	}
	if f.code == http.StatusOK {
		if kept["Content-Encoding"] != nil { // otherwise ServeContent sets the length
			header.Set("Content-Length", strconv.Itoa(len(f.body)))
		}
		modified, _ := date(kept, "Last-Modified")
		http.ServeContent(w, inBytes(r), "", modified, bytes.NewReader(f.body))
		return
	}
	if f.code != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(f.body)))
	}
	w.WriteHeader(f.code)
	if r.Method != http.MethodHead && len(f.body) > 0 {
		// Not w.Write(f.body): a server may use the slice after Write has returned. An error means
		// that the client has gone.
		_, _ = io.Copy(w, io.LimitReader(bytes.NewReader(f.body), int64(len(f.body))))
	}
}

// inBytes returns the request without a Range that must be ignored: of another unit, or of a HEAD.
func inBytes(r *http.Request) *http.Request {
	unit, ranges, _ := strings.Cut(r.Header.Get("Range"), "=")
	if ranges == "" && unit == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Del("Range")
	if lower(unit) == "bytes" && ranges != "" && r.Method == http.MethodGet {
		r.Header.Set("Range", "bytes="+ranges)
	}
	return r
}

// addStatus adds a Cache-Status header, if Options.Status is set.
func (m *Middleware) addStatus(header http.Header, what string) {
	if name := m.options.Status; name != "" {
		header.Add("Cache-Status", name+"; "+what)
	}
}

// wholeSeconds formats a time for a header: in seconds, rounded down.
func wholeSeconds(t time.Duration) string {
	n := t / time.Second
	if t < 0 && t%time.Second != 0 {
		n--
	}
	return strconv.FormatInt(int64(n), 10)
}
