package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMediansAndRatios(t *testing.T) {
	lines := "PASS\nset\ta\t10\nset\tb\t30\nget\ta\t5\n" +
		"set\ta\t12\nset\tb\t20\nset\ta\t11\nset\tb\t22\n"
	var b strings.Builder
	require.NoError(t, run(strings.NewReader(lines), &b, "load", "a"))
	require.Equal(t, "\n| load | a | b |\n|---|--:|--:|\n"+
		"| set | 11.0 (10.0-12.0) | 22.0 (20.0-30.0), 2.00 |\n"+
		"| get | 5.00 | - |\n", b.String())
}

func TestNoNumberIsAnError(t *testing.T) {
	require.Error(t, run(strings.NewReader("set\ta\tmany\n"), &strings.Builder{}, "", ""))
	require.Error(t, run(strings.NewReader(""), &strings.Builder{}, "", ""))
}
