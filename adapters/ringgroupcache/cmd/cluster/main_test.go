package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test program is the processes of the cluster, too.
func TestMain(m *testing.M) {
	if os.Getenv(nodeVariable) != "" {
		exit(serve(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

var number = regexp.MustCompile(`\d+`)

func TestRun_ProcessesFillEachOtherAndOneIsKilled(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out), "every request was answered, with the right value")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5, out.String())
	var steps [][]int // requests, loads of three processes, values from peers
	for _, line := range lines[1:] {
		var row []int
		for _, n := range number.FindAllString(line, -1) {
			i, err := strconv.Atoi(n)
			require.NoError(t, err)
			row = append(row, i)
		}
		require.Len(t, row, 5, line)
		steps = append(steps, row)
	}
	first, again, killed, left := steps[0], steps[1], steps[2], steps[3]

	require.Equal(t, 3*keys, first[0])
	require.Equal(t, keys, first[1]+first[2]+first[3], "one load of each key")
	require.Positive(t, min(first[1], first[2], first[3]), "each process has a part")
	require.Equal(t, 2*keys, first[4], "what the others asked the owner for")

	require.Equal(t, []int{3 * keys, 0, 0, 0, 0}, again, "each has it all")

	require.Equal(t, 2*keys, killed[0])
	require.Greater(t, killed[1]+killed[2]+killed[4], keys, "keys of the dead are loaded by both")

	require.Equal(t, []int{2 * keys, 0, keys}, []int{left[0], left[3], left[4]})
	require.Equal(t, keys, left[1]+left[2], "one load of each key")
}
