package rounds

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTablesHaveMediansOfTheLoadsWithFigures(t *testing.T) {
	p := Part{
		Name: "part", Note: "A note.",
		Loads: []string{"reads", "writes"}, Stores: []string{"a", "b"}, Figures: []string{"ns", "hits"},
	}
	var b bytes.Buffer
	p.write(&b, results{
		{"reads", "a", "ns"}:   {3, 1, 2},
		{"reads", "a", "hits"}: {100},
		{"writes", "b", "ns"}:  {7},
	})
	assert.Equal(t, `
## part

A note.

| ns | a | b |
|---|--:|--:|
| reads | 2.00 (1.00-3.00) | - |
| writes | - | 7.00 |

| hits | a | b |
|---|--:|--:|
| reads | 100 | - |
`, b.String())
}

func TestFlags(t *testing.T) {
	p := Program{Name: "p"}
	o, err := p.parse([]string{"-rounds", "3"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, options{rounds: 3, duration: time.Second}, o)
	for _, wrong := range [][]string{{"-rounds", "0"}, {"-duration", "0s"}, {"more"}, {"-what"}} {
		_, err := p.parse(wrong, io.Discard)
		assert.Error(t, err, wrong)
	}
}

func TestATaskIsOfAPart(t *testing.T) {
	p := Program{Parts: []Part{{Name: "a", Do: func(t Task) (Figures, error) {
		return Figures{t.Load: 1}, nil
	}}}}
	f, err := p.do(Task{Part: "a", Load: "x"})
	require.NoError(t, err)
	assert.Equal(t, Figures{"x": 1}, f)
	_, err = p.do(Task{Part: "b"})
	require.ErrorContains(t, err, `"b"`)
}
