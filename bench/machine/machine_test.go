package machine

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

func TestHeaderNamesVersions(t *testing.T) {
	m := This()
	m.Versions = map[string]string{"a": "v1", "c": "v3"}
	text := m.Header("run me", []string{"a", "b"})
	if !strings.Contains(text, "`run me`") || !strings.Contains(text, "Versions: a v1\n") ||
		!strings.Contains(text, runtime.Version()) {
		t.Fatalf("unexpected header:\n%s", text)
	}
}

func TestLiveSeesWhatIsHeld(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no VmRSS")
	}
	const size = 64 << 20
	before := Live()
	held := bytes.Repeat([]byte{1}, size)
	added := Live() - before
	runtime.KeepAlive(held)
	// The race detector adds its own memory.
	if added < size*9/10 || added > size*4 {
		t.Fatalf("%d bytes added %d to the resident memory", size, added)
	}
}
