package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProgram, when set, makes the test binary behave as the program, which starts itself.
const asProgram = "NEARCACHE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRun_PrintsTheTable(t *testing.T) {
	s, err := startServer()
	if err == errNoServer && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	s.stop()

	t.Setenv(asProgram, "1")
	out := new(strings.Builder)
	args := []string{"-for=700ms", "-keys=500", "-value=100", "-writes=200"}
	require.NoError(t, run(args, nil, out))
	t.Logf("\n%s", out)

	table := map[string][]float64{} // of each row: writer and reader without, and with
	four := strings.Repeat(` +([\d,.]+)( %| µs)?`, 4)
	figures := regexp.MustCompile(`(?m)^(\S.*?)` + four + `$`)
	for _, m := range figures.FindAllStringSubmatch(out.String(), -1) {
		for _, i := range []int{2, 4, 6, 8} {
			f, err := strconv.ParseFloat(strings.ReplaceAll(m[i], ",", ""), 64)
			require.NoError(t, err)
			table[m[1]] = append(table[m[1]], f)
		}
	}
	require.Len(t, table, len(rows(config{})))
	for i := range 4 {
		near, writes := i >= 2, i%2 == 0
		reads, trips := table["reads a second"][i], table["round trips a second"][i]
		require.Positive(t, trips)
		require.Equal(t, near, trips < reads)
		require.Equal(t, near, table["hit ratio"][i] > 0)
		require.Positive(t, table["p50 of a read"][i])
		require.GreaterOrEqual(t, table["p99 of a read"][i], table["p50 of a read"][i])
		require.Equal(t, writes, table["writes"][i] > 0)
		require.Zero(t, table["stale in the end"][i])
	}
	require.Regexp(t, `\nNetwork round trips saved: [\d,]+ of [\d,]+ reads, [\d.]+ %\.\n$`, out)
}

func TestRun_SaysWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := run(nil, nil, new(strings.Builder))
	require.ErrorIs(t, err, errNoServer)
	require.ErrorContains(t, err, "apt-get install redis-server")
}

func TestRun_Refuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":       {"a"},
		"no keys":           {"-keys", "0"},
		"no writes":         {"-writes", "0"},
		"no time":           {"-for", "0s"},
		"a value too short": {"-value", "1"},
		"an unknown flag":   {"-no-such-flag"},
		"no server there":   {"-redis", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, run(args, nil, new(strings.Builder)))
		})
	}
}

func TestCount(t *testing.T) {
	for want, f := range map[string]float64{
		"0": 0, "999": 999, "1,000": 1000, "123,456": 123456, "1,234,567": 1234567,
	} {
		require.Equal(t, want, count(f))
	}
}
