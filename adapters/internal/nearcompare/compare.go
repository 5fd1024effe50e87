package nearcompare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/adapters/internal/respserver"
)

// names are the caches; the second is compared with the first.
var names = [2]string{"LRU", "ringcache"}

// process is a child.
type process struct {
	cmd    *exec.Cmd
	turns  io.WriteCloser
	out    *json.Decoder
	filled filled
	times  map[string][]float64
}

// compare measures both caches and prints the table.
func compare(t Target, cfg config, out io.Writer) error {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := respserver.Start(dir, t.Programs)
	if err != nil {
		return err
	}
	defer server.Kill()
	if err := fillServer(t, server.Addr(), cfg); err != nil {
		return fmt.Errorf("fill the server: %w", err)
	}
	var processes [2]*process
	for i, name := range names {
		p, err := startChild(cfg, name, server.Addr())
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		defer p.end()
		processes[i] = p
	}
	for i := range cfg.rounds {
		for j := range processes { // each goes first in every other round
			p := processes[(i+j)%2]
			if err := p.turn(); err != nil {
				return fmt.Errorf("measure %s: %w", names[(i+j)%2], err)
			}
		}
	}
	return writeTable(out, t, cfg, processes)
}

// fillServer writes the keys. A value begins with the index of another key.
func fillServer(t Target, addr string, cfg config) error {
	client, err := t.Connect(addr, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	r := &reader{keys: allKeys(cfg.entries), n: cfg.entries}
	next := rand.New(rand.NewPCG(3, 4)).Perm(r.n)
	pad := strings.Repeat("v", cfg.valueSize-digits)
	for i := 0; i < r.n; i += batch {
		keys := r.batch(i)
		values := make([]string, len(keys))
		for j := range values {
			values[j] = fmt.Sprintf("%0*d%s", digits, next[i+j], pad)
		}
		if err := client.Set(keys, values); err != nil {
			return err
		}
	}
	return nil
}

func startChild(cfg config, name, addr string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{times: map[string][]float64{}}
	p.cmd = exec.Command(self, "-child", name, "-addr", addr,
		"-entries", strconv.Itoa(cfg.entries), "-value", strconv.Itoa(cfg.valueSize),
		"-ops", strconv.Itoa(cfg.ops))
	p.cmd.Stderr = os.Stderr
	if p.turns, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(stdout)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.out.Decode(&p.filled); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// turn has the child measure once.
func (p *process) turn() error {
	var r round
	if _, err := fmt.Fprintln(p.turns); err != nil {
		return err
	}
	if err := p.out.Decode(&r); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it has ended")
		}
		return err
	}
	for load, t := range r {
		p.times[load] = append(p.times[load], t)
	}
	return nil
}

// end lets the child go: it ends when its input does.
func (p *process) end() {
	p.turns.Close()
	_ = p.cmd.Wait()
}

// writeTable prints one line for each figure. Lower is better in all of them.
func writeTable(out io.Writer, t Target, cfg config, p [2]*process) error {
	b := new(strings.Builder)
	fmt.Fprintf(b, "%d entries of %d + %d bytes, medians of %d turns; lower is better\n\n",
		cfg.entries, keySize, cfg.valueSize, cfg.rounds)
	line := func(what, unit string, a, b2 float64) {
		fmt.Fprintf(b, "| %-22s | %10.1f %-4s | %10.1f %-4s | %6.3f |\n", what, a, unit, b2, unit, b2/a)
	}
	fmt.Fprintf(b, "| %-22s | %15s | %15s | %6s |\n", "", t.Client+" LRU", "near cache", "ratio")
	fmt.Fprintf(b, "|%s|%s:|%s:|%s:|\n", strings.Repeat("-", 24), strings.Repeat("-", 16),
		strings.Repeat("-", 16), strings.Repeat("-", 7))
	for _, load := range loads {
		line("hit, "+load, "ns", median(p[0].times[load]), median(p[1].times[load]))
	}
	line("Go heap, an entry", "B", p[0].filled.HeapBytes, p[1].filled.HeapBytes)
	line("runtime.GC()", "ms", 1e3*p[0].filled.GC, 1e3*p[1].filled.GC)
	line("the same, empty cache", "ms", 1e3*p[0].filled.EmptyGC, 1e3*p[1].filled.EmptyGC)
	_, err := io.WriteString(out, b.String())
	return err
}
