package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A small run prints all tables, and finds cold entries.
func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"-payload", "proto", "-mb", "64", "-sets", "120000", "-rounds", "1"}
	require.NoError(t, run(t.Context(), args, &out, &errs))
	require.Equal(t, len(measurements), strings.Count(out.String(), "| entries |"))
	require.Contains(t, out.String(), "| cold Get p50, ns |")
	t.Log(out.String())
}

func TestRun_Refuses(t *testing.T) {
	var out bytes.Buffer
	require.ErrorContains(t, run(t.Context(), []string{"-mb", "1"}, &out, &out), "-mb")
	require.ErrorContains(t, run(t.Context(), []string{"-payload", "xml"}, &out, &out), "xml")
}
