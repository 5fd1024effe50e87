package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"sync"
)

// process is a member of the cluster, as its parent sees it.
type process struct {
	addresses
	counts  counts // when they were asked for last
	command *exec.Cmd
	stdin   *json.Encoder
	stdout  *json.Decoder
	killing sync.Once
}

// start starts this program again, as a member.
func start(ctx context.Context) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, program)}
	p.command.Env = append(os.Environ(), nodeVariable+"=1")
	p.command.Stderr = os.Stderr
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.stdout = json.NewEncoder(stdin), json.NewDecoder(bufio.NewReader(stdout))
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if err := p.stdout.Decode(&p.addresses); err != nil {
		p.kill()
		return nil, fmt.Errorf("a process did not start: %w", err)
	}
	return p, nil
}

// kill ends the process at once, without a word to it.
func (p *process) kill() {
	p.killing.Do(func() {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	})
}

// meet tells the process the addresses of all, and waits until it has taken them.
func (p *process) meet(peers []string) error {
	if err := p.stdin.Encode(peers); err != nil {
		return err
	}
	var taken int
	return p.stdout.Decode(&taken)
}

// ask asks for a key, and looks whether the answer is right.
func (p *process) ask(ctx context.Context, key string) error {
	body, err := get(ctx, "http://"+p.Front+"/value?key="+url.QueryEscape(key))
	if err == nil && string(body) != valueOf(key) {
		err = fmt.Errorf("the value of %s is %q", key, body)
	}
	return err
}

// count asks for the counts.
func (p *process) count(ctx context.Context) error {
	body, err := get(ctx, "http://"+p.Front+"/counts")
	if err != nil {
		return err
	}
	return json.Unmarshal(body, &p.counts)
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}
