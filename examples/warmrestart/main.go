// Warmrestart shows a cache that survives its process. A service reads from a slow source through a
// cache in a file (ringcache.Options.File). Its parent kills it with SIGKILL while it is working,
// and starts it again: the new process begins with a warm cache.
//
//	go run ./examples/warmrestart [flags]
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// config is what the command line sets.
type config struct {
	dir      string        // of the cache's file
	requests int           // in each life
	delay    time.Duration // of one read from the source
	serve    bool          // be the service
}

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "warmrestart: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its arguments and output passed in.
func run(args []string, out io.Writer) error {
	var cfg config
	flags := flag.NewFlagSet("warmrestart", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&cfg.dir, "dir", "",
		"folder of the cache's file (default: /dev/shm if it is there)")
	flags.IntVar(&cfg.requests, "requests", 20000, "requests of each life")
	flags.DurationVar(&cfg.delay, "delay", 100*time.Microsecond, "time that the source takes")
	flags.BoolVar(&cfg.serve, "serve", false, "be the service, which the parent kills")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.serve {
		return serve(cfg, out)
	}
	return live(cfg, out)
}

// live starts the service twice, kills it each time, and prints what it reported.
func live(cfg config, out io.Writer) error {
	if cfg.dir == "" {
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			cfg.dir = "/dev/shm"
		}
	}
	dir, err := os.MkdirTemp(cfg.dir, "warmrestart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg.dir = dir
	for _, life := range []string{"cold", "warm"} {
		report, err := liveOnce(cfg)
		if err != nil {
			return fmt.Errorf("%s life: %w", life, err)
		}
		fmt.Fprintf(out, "%s: %s\n", life, report)
	}
	fmt.Fprintln(out, "Both were killed with SIGKILL.")
	return nil
}

// liveOnce starts the service, waits for its report, and kills it while it continues to work.
func liveOnce(cfg config) (report string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(exe, "-serve", "-dir", cfg.dir, "-delay", cfg.delay.String(),
		"-requests", fmt.Sprint(cfg.requests))
	cmd.Env = append(os.Environ(), serveEnv+"=1")
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	killed := cmd.Process.Kill()
	_ = cmd.Wait() // an error that says that it was killed
	return strings.TrimSpace(line), errors.Join(err, killed)
}

// serveEnv tells the test binary to be the service.
const serveEnv = "WARMRESTART_SERVE"

// path is the file of the cache.
func (cfg config) path() string { return filepath.Join(cfg.dir, "cache.ring") }
