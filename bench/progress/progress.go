// Package progress runs the parts of a long job in parallel and says how far it
// is.
package progress

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Job is a number of tasks of known cost.
type Job struct {
	Workers int
	Out     io.Writer // for the lines of progress
	Tasks   []Task
}

// Task is one part of a job.
type Task struct {
	Cost float64                             // in any unit
	Run  func(context.Context) (line string) // the line says how it went
}

// Run performs all tasks, in their order as far as workers allow, and writes a
// line after each. It returns the context's error if that ends first.
func (j *Job) Run(ctx context.Context) error {
	m := meter{out: j.Out, tasks: len(j.Tasks), start: time.Now()}
	for _, t := range j.Tasks {
		m.cost += t.Cost
	}
	queue := make(chan Task)
	var wg sync.WaitGroup
	for range max(1, j.Workers) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for t := range queue {
				m.done(t.Cost, t.Run(ctx))
			}
		}()
	}
	for _, t := range j.Tasks {
		select {
		case queue <- t:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wg.Wait()
	return ctx.Err()
}

// meter writes the lines.
type meter struct {
	out   io.Writer
	tasks int
	cost  float64
	start time.Time

	mu       sync.Mutex
	finished int
	spent    float64
}

func (m *meter) done(cost float64, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished++
	m.spent += cost
	left := time.Duration(0)
	if m.spent > 0 {
		left = time.Duration(float64(time.Since(m.start)) * (m.cost - m.spent) / m.spent)
	}
	fmt.Fprintf(m.out, "[%d/%d, %v left] %s\n", m.finished, m.tasks, left.Round(time.Second), line)
}
