package hitratio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row that is written is read as it was, and one that failed is left out.
func TestRowsAreReadAsWritten(t *testing.T) {
	r := Row{Mode: Memory, Store: "otter", Off: 0.0123, Replays: 2, Rounds: 3, Spread: 1.25,
		Date: "2026-01-02", Outcome: Outcome{ByteRatio: 12.5, Nominal: 7, Held: 8, Memory: 9}}
	r.Plan = Plan{Load: "a, b", Percent: 10, Values: Sized, Payload: "json", Writes: 0.2, Copies: 2,
		Stretch: 1.5, Keys: 10, Footprint: 1 << 40, Budget: 1 << 36}
	r.Counts = Counts{Requests: 1000, Hits: 333, Refused: 1, Beside: 4, BesideHits: 3}
	failed := r
	failed.Failed = "wrong value"
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, WriteRows(file, []Row{failed, r}))
	rows, err := ReadRows(file)
	require.NoError(t, err)
	require.Equal(t, []Row{r}, rows)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), ",33.3,12.5,1000,333,")
}

func TestReadRowsRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, WriteRows(file, []Row{{Store: "a"}}))
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"error\n\n\"": "read ", "a,error\n": "there is no column",
		strings.Replace(string(good), ",0,", ",x,", 1): "line 2: column ",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		_, err := ReadRows(file)
		require.ErrorContains(t, err, want)
	}
	_, err = ReadRows(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
