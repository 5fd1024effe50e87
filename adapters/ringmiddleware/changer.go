package ringmiddleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// changer is the ResponseWriter for an unsafe request. It invalidates before the client gets any
// part of the response.
type changer struct {
	http.ResponseWriter
	invalidate func()
	code       int // 0: the response has not begun
}

// Unwrap is for http.ResponseController.
func (c *changer) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *changer) WriteHeader(code int) {
	if c.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		c.begin(code)
	}
	c.ResponseWriter.WriteHeader(code)
}

// begin notes the status code, once.
func (c *changer) begin(code int) {
	if c.code != 0 {
		return
	}
	if c.code = code; code < 400 {
		c.invalidate()
	}
}

func (c *changer) Write(p []byte) (int, error) {
	c.begin(http.StatusOK)
	return c.ResponseWriter.Write(p)
}

func (c *changer) ReadFrom(src io.Reader) (int64, error) {
	c.begin(http.StatusOK)
	return io.Copy(c.ResponseWriter, src)
}

func (c *changer) Flush() { _ = c.FlushError() }

func (c *changer) FlushError() error {
	c.begin(http.StatusOK)
	return http.NewResponseController(c.ResponseWriter).Flush()
}

func (c *changer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c.begin(http.StatusSwitchingProtocols)
	return http.NewResponseController(c.ResponseWriter).Hijack()
}
