package ringmiddleware

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"
)

// answer sends an entry. What the request asks for under conditions, or in parts, is answered
// so. With an empty age, the Age is what the handler has said, if anything.
func (m *Middleware) answer(
	w http.ResponseWriter, r *http.Request, f *found, age, status string,
) {
	kept := make(http.Header, len(f.header))
	for _, field := range f.header {
		kept[field.name] = append(kept[field.name], field.value)
	}
	header := w.Header()
	copyHeader(header, kept)
	if age != "" {
		header.Set("Age", age)
	}
	m.addStatus(header, status)
	if kept["Content-Type"] == nil {
		header["Content-Type"] = nil // the handler wants none, or there is nothing to guess from
	}
	if f.code == http.StatusOK {
		if kept["Content-Encoding"] != nil { // else the length is set below
			header.Set("Content-Length", strconv.Itoa(len(f.body)))
		}
		modified, _ := date(kept, "Last-Modified")
		http.ServeContent(w, r, "", modified, bytes.NewReader(f.body))
		return
	}
	if f.code != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(f.body)))
	}
	w.WriteHeader(f.code)
	if r.Method != http.MethodHead && len(f.body) > 0 {
		// Not the body itself: a server may look at what is written for longer than it says.
		// The client may be gone.
		_, _ = io.Copy(w, io.LimitReader(bytes.NewReader(f.body), int64(len(f.body))))
	}
}

// addStatus adds what has happened to Cache-Status, if that is wanted.
func (m *Middleware) addStatus(header http.Header, what string) {
	if name := m.options.Status; name != "" {
		header.Add("Cache-Status", name+"; "+what)
	}
}

// wholeSeconds returns a time as headers have it, rounded down.
func wholeSeconds(t time.Duration) string {
	n := t / time.Second
	if t < 0 && t%time.Second != 0 {
		n--
	}
	return strconv.FormatInt(int64(n), 10)
}
