package neartest

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/internal/nearcompare"
	"github.com/ringcache/ringcache/adapters/internal/respserver"
)

// asProgram, when set, makes the test binary behave as the program, which starts itself.
const asProgram = "COMPARE_TEST_AS_PROGRAM"

// CompareMain is the TestMain of a program that compares, for Compare.
func CompareMain(m *testing.M, main func()) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Compare tests that the program prints its table.
func Compare(t *testing.T, target nearcompare.Target) {
	t.Setenv(asProgram, "1")
	out := new(strings.Builder)
	args := []string{"-entries=3000", "-value=20", "-rounds=2", "-ops=2000"}
	err := nearcompare.Run(target, args, nil, out)
	if errors.Is(err, respserver.ErrNotInstalled) && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Logf("\n%s", out)
	require.Contains(t, out.String(), "3000 entries of 16 + 20 bytes, medians of 2 turns")
	_, table, _ := strings.Cut(out.String(), "\n\n")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, lines, 2+6)
	for _, line := range lines {
		require.Len(t, line, len(lines[0]))
	}
}
