package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test program be what the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("CLI_TEST") != "" {
		Main("name", command)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command doubles numbers below 100 as a part, and else fails as it is told.
func command(_ context.Context, args []string, stdout, _ io.Writer) error {
	is, err := Part(args, stdout, func(n int) (int, error) {
		if n >= 100 {
			return 0, errors.New("too large")
		}
		return 2 * n, nil
	})
	switch {
	case is:
		return err
	case len(args) > 0 && args[0] == "help":
		return fmt.Errorf("parse: %w", flag.ErrHelp)
	case len(args) > 0:
		return errors.New(args[0])
	}
	return nil
}

func TestAgain(t *testing.T) {
	var n int
	if err := Again(t.Context(), 21, &n, "CLI_TEST=1"); err != nil || n != 42 {
		t.Errorf("got %d, error %v", n, err)
	}
	err := Again(t.Context(), 100, &n, "CLI_TEST=1")
	if err == nil || !strings.Contains(err.Error(), "name: too large") {
		t.Errorf("error %v does not say why", err)
	}
	if err := Again(t.Context(), "no number", &n, "CLI_TEST=1"); err == nil {
		t.Error("a task that cannot be read is performed")
	}
	var text string
	if err := Again(t.Context(), 1, &text, "CLI_TEST=1"); err == nil {
		t.Error("a result of another type is taken")
	}
}

func TestOther(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	var n int
	require.NoError(t, Other(t.Context(), exe, 21, &n, "CLI_TEST=1"))
	require.Equal(t, 42, n)
	require.Error(t, Other(t.Context(), exe+"-missing", 21, &n))
}

func TestMainExits(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{"help": "", "out of luck": "name: out of luck\n"} {
		var stderr bytes.Buffer
		cmd := exec.Command(exe, arg)
		cmd.Env, cmd.Stderr = append(os.Environ(), "CLI_TEST=1"), &stderr
		if err := cmd.Run(); (err == nil) != (want == "") || stderr.String() != want {
			t.Errorf("%s: exit %v, said %q, want %q", arg, err, &stderr, want)
		}
	}
}

func TestWrite(t *testing.T) {
	var out bytes.Buffer
	if err := Write("", &out, []byte("text")); err != nil || out.String() != "text" {
		t.Errorf("wrote %q, error %v", &out, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := Write(file, &out, []byte("other")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "other" {
		t.Errorf("the file has %q, error %v", text, err)
	}
}
