package progress

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

func TestRun(t *testing.T) {
	var ran, atOnce, most atomic.Int32
	var out bytes.Buffer
	j := Job{Workers: 3, Out: &out}
	for range 20 {
		j.Tasks = append(j.Tasks, Task{Cost: 1, Run: func(context.Context) string {
			now := atOnce.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			ran.Add(1)
			atOnce.Add(-1)
			return "done"
		}})
	}
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ran.Load() != 20 || most.Load() > 3 {
		t.Fatalf("%d tasks ran, up to %d at once", ran.Load(), most.Load())
	}
	text := out.String()
	if strings.Count(text, "\n") != 20 || !strings.Contains(text, "[20/20, 0s left] done\n") {
		t.Fatalf("unexpected lines:\n%s", text)
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := 0
	j := Job{Workers: 1, Out: new(bytes.Buffer)}
	for range 20 {
		j.Tasks = append(j.Tasks, Task{Run: func(context.Context) string {
			ran++
			cancel()
			return ""
		}})
	}
	if err := j.Run(ctx); !errors.Is(err, context.Canceled) || ran > 2 {
		t.Fatalf("%d tasks ran, error %v", ran, err)
	}
}
