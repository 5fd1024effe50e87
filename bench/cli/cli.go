// Package cli is what the commands have in common: they start, fail and end the
// same way, write to a file or to standard output, and some run themselves again for
// a part of their work.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// Run is a command without its surroundings. flag.ErrHelp is no failure.
type Run func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs the command with the process's arguments and ends the process: with
// code 1 and a message if it fails. An interrupt ends the context.
func Main(name string, run Run) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Write writes text to the file, or to stdout if there is no file.
func Write(file string, stdout io.Writer, text []byte) error {
	if file == "" {
		_, err := stdout.Write(text)
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// childFlag marks the arguments of a process that Again has started.
const childFlag = "-child"

// Again runs this program once more, for the one task that spec describes, with
// more variables in its environment, and reads its result. Part must be the first
// thing that the program does.
func Again(ctx context.Context, spec, result any, env ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	return Other(ctx, exe, spec, result, env...)
}

// Other is Again with another program that begins with Part: exe, such as an older
// build of this one.
func Other(ctx context.Context, exe string, spec, result any, env ...string) error {
	arg, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write task: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, childFlag, string(arg))
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		reason, _, _ := strings.Cut(stderr.String(), "\n") // of a panic, the rest is the stack
		return fmt.Errorf("run: %w: %s", err, reason)
	}
	if err := json.Unmarshal(stdout.Bytes(), result); err != nil {
		return fmt.Errorf("read result: %w", err)
	}
	return nil
}

// Part performs the task that Again has started the process for, if it has, and
// prints the result.
func Part[S, R any](args []string, stdout io.Writer, do func(S) (R, error)) (is bool, err error) {
	if len(args) != 2 || args[0] != childFlag {
		return false, nil
	}
	var spec S
	if err := json.Unmarshal([]byte(args[1]), &spec); err != nil {
		return true, fmt.Errorf("read task: %w", err)
	}
	result, err := do(spec)
	if err != nil {
		return true, err
	}
	return true, json.NewEncoder(stdout).Encode(result)
}
