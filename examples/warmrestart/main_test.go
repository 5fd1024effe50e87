package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" { // the service that a test has started
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRun_SecondLifeIsWarm(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run([]string{"-dir", t.TempDir(), "-requests", "5000", "-delay", "10us"}, &out))
	lines := regexp.MustCompile(`(?m)^(cold|warm): (\d+) entries recovered in .*; ([\d.]+) % hits`).
		FindAllStringSubmatch(out.String(), -1)
	require.Len(t, lines, 2, out.String())
	require.Equal(t, "0", lines[0][2])
	recovered, err := strconv.Atoi(lines[1][2])
	require.NoError(t, err)
	require.Greater(t, recovered, 500)
	var hits [2]float64
	for i := range hits {
		hits[i], err = strconv.ParseFloat(lines[i][3], 64)
		require.NoError(t, err)
	}
	require.Greater(t, hits[1], hits[0]+5, out.String())
}

func TestRun_BadFlag(t *testing.T) {
	require.Error(t, run([]string{"-nope"}, new(strings.Builder)))
}
