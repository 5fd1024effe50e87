package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/cli"
)

func TestMain(m *testing.M) {
	if is, err := cli.Part(os.Args[1:], os.Stdout, task.do); is {
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func TestRun_ComparesBoth(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := []string{"-entries", "20000", "-rounds", "2", "-dir", t.TempDir()}
	require.NoError(t, run(context.Background(), args, &stdout, &stderr))
	for _, want := range []string{"| save, s |", "| load, s |", "| size, MB |", "Gets during a save",
		"20000 entries"} {
		require.Contains(t, stdout.String(), want)
	}
	require.NotContains(t, stdout.String(), "NaN")
	require.Error(t, run(context.Background(), []string{"-rounds", "0"}, &stdout, &stderr))
}
