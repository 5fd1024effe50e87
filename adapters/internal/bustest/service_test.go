package bustest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is an instance of the service.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Reader
}

// startProcess starts an instance, which is killed after the test.
func startProcess(t *testing.T, of string) *process {
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childVariable+"="+of)
	p.cmd.Stderr = os.Stderr
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.answers = bufio.NewReader(stdout)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	p.do("subscribed")
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// ask sends a command.
func (p *process) ask(command string) (r report) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.stdin, command)
	require.NoError(p.t, err)
	line, err := p.answers.ReadBytes('\n')
	require.NoError(p.t, err, "the process has failed at %q", command)
	require.NoError(p.t, json.Unmarshal(line, &r))
	return r
}

// do is ask for a command that must succeed.
func (p *process) do(command string) report {
	p.t.Helper()
	r := p.ask(command)
	require.Empty(p.t, r.Err, command)
	return r
}

// database has a version of each key: GET /5 returns it, POST /5 increments it.
type database [numKeys]atomic.Int64

func (db *database) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var k int
	_, _ = fmt.Sscan(strings.TrimPrefix(r.URL.Path, "/"), &k)
	if r.Method == http.MethodPost {
		fmt.Fprint(w, db[k].Add(1))
		return
	}
	fmt.Fprint(w, db[k].Load())
}

// TestService runs three instances whose bus is killed again and again, and an instance too. While
// they run, each checks what it reads; in the end no entry is stale. Then one deletes a million
// keys.
func TestService(t *testing.T) { eachSystem(t, testService) }

func testService(t *testing.T, name string, bus *busServer) {
	db := httptest.NewServer(new(database))
	t.Cleanup(db.Close)
	of := fmt.Sprint(name, " ", bus.addr(), " ", strings.TrimPrefix(db.URL, "http://"))
	var all []*process
	each := func(command string) (reports []report) {
		t.Helper()
		for _, p := range all {
			reports = append(reports, p.do(command))
		}
		return reports
	}
	for range 3 {
		all = append(all, startProcess(t, of))
	}
	each("run")
	for n := range 6 {
		time.Sleep(300 * time.Millisecond)
		if n == 3 {
			all[2].kill()
			all[2] = startProcess(t, of)
			all[2].do("run")
		}
		each("subscribed")
		bus.kill()
		time.Sleep(200 * time.Millisecond)
		bus.restart()
	}
	each("still")
	each("subscribed")
	for _, p := range all {
		var got report
		require.Eventually(t, func() bool {
			got = p.ask("check")
			return got.Err == ""
		}, patience, 50*time.Millisecond, "entries become current")
	}
	for i, r := range each("stop") {
		t.Logf("process %d: %+v", i, r)
		require.Greater(t, r.Reads, 2*r.Loads, "there are hits")
		require.Greater(t, r.Bus.Emptied, uint64(3))
		require.Positive(t, r.Bus.Received)
		if i < 2 {
			require.Positive(t, r.Failed)
		}
	}
	testBurst(t, all, each)
}

func testBurst(t *testing.T, all []*process, each func(string) []report) {
	n := 1_000_000
	if testing.Short() {
		n /= 20
	}
	for i, r := range each(fmt.Sprint("fill ", n)) {
		require.GreaterOrEqual(t, r.Entries, n, "process %d", i)
	}
	before := each("subscribed")
	require.Less(t, all[0].do(fmt.Sprint("burst ", n)).Entries, 1000)
	for i, p := range all {
		require.Eventually(t, func() bool { return p.do("subscribed").Entries < 1000 },
			patience, 20*time.Millisecond, "all keys are gone")
		after := p.do("subscribed")
		t.Logf("process %d: %+v", i, after)
		require.Less(t, after.Heap, before[i].Heap+4<<20)
		require.Less(t, after.Goroutines, 100)
		if i == 0 {
			sent := after.Bus.Published - before[0].Bus.Published
			require.InDelta(t, n*13>>16, sent, 2, "13 bytes for each key, in messages of 64 KB")
		}
	}
}
