//go:build linux

package persist

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A process writes to a cache in a file as fast as it can and is killed at some moment.
// What it had done by then is known to the last call: each of its goroutines counts its
// calls in memory that outlives it, and what it does with the nth is drawn from n.

const (
	deathFile    = "RINGCACHE_TEST_DEATH"
	deathWorkers = 2
	deathKeys    = 1500 // of each worker
)

// deathOp is what a worker does with its nth call of a life.
type deathOp struct {
	key  uint16
	kind byte // of the cases of do
	size int  // of the value
	ttl  time.Duration
}

func drawDeathOp(life, worker, n uint64) (op deathOp) {
	r := rand.New(rand.NewPCG(life<<8|worker, n))
	op.key = uint16(r.IntN(deathKeys))
	op.kind = byte(r.IntN(100))
	op.size = 26 + r.IntN(3)*40 // often as long as the one before
	if op.key%4 == 3 {
		op.size += 1200 // so that a small cache becomes full
	}
	if op.key < 2 {
		op.size = 20000 + r.IntN(50000)
	}
	op.ttl = time.Duration(100+r.IntN(2000)) * time.Millisecond
	return op
}

func (op *deathOp) isDel() bool   { return op.kind < 15 }
func (op *deathOp) hasTTL() bool  { return op.kind >= 15 && op.kind < 30 }
func (op *deathOp) isBatch() bool { return op.kind >= 30 && op.kind < 40 }

// deathKey is the key of an op.
func deathKey(worker uint64, key uint16) []byte {
	return fmt.Appendf(nil, "%d key %d", worker, key)
}

// deathValue names the call that wrote it, and when it expires.
func deathValue(life, worker, n uint64, op *deathOp) []byte {
	v := binary.LittleEndian.AppendUint64(nil, life<<8|worker)
	v = binary.LittleEndian.AppendUint64(v, n)
	var until int64
	if op.hasTTL() {
		until = time.Now().Add(op.ttl).UnixNano()
	}
	v = binary.LittleEndian.AppendUint64(v, uint64(until))
	for len(v) < op.size {
		v = append(v, byte(n)+byte(len(v)%16))
	}
	return v
}

// do makes one call.
func (op *deathOp) do(c *ringcache.Cache, life, worker, n uint64) error {
	k := deathKey(worker, op.key)
	v := deathValue(life, worker, n, op)
	switch {
	case op.isDel():
		c.Del(k)
		return nil
	case op.hasTTL():
		return c.SetWithTTL(k, v, op.ttl)
	case op.isBatch():
		return c.SetBatch([][]byte{k}, [][]byte{v})
	}
	return c.Set(k, v)
}

// TestDeath_Child is the process that is killed.
func TestDeath_Child(t *testing.T) {
	path := os.Getenv(deathFile)
	if path == "" {
		t.Skip("it is run by the tests below")
	}
	var life uint64
	var kind deathKind
	var closes bool
	_, err := fmt.Sscan(os.Getenv(deathFile+"_LIFE"), &life, &kind.policy, &kind.cold, &closes)
	require.NoError(t, err)
	counts := ringtest.DeathCounts(t, path+".counts")
	c := kind.open(t, path)
	var wg sync.WaitGroup
	var stop atomic.Bool
	for w := range uint64(deathWorkers) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := uint64(0); !stop.Load(); n++ {
				op, begun := drawDeathOp(life, w, n), time.Now()
				if err := op.do(c, life, w, n); err != nil {
					panic(err)
				}
				took := uint64(time.Since(begun))
				counts[deathWorkers+w].Store(max(took, counts[deathWorkers+w].Load()))
				counts[w].Store(n + 1)
				if kind.cold && n%8 == 0 {
					time.Sleep(50 * time.Microsecond) // else what is compressed has left by the end
				}
				if n%64 == 0 {
					c.Get(nil, deathKey(w, op.key)) // so that there are promotions
				}
			}
		}()
	}
	if life%3 == 0 && !kind.cold {
		for i := range 4 {
			time.Sleep(5 * time.Millisecond)
			require.NoError(t, c.Resize((64+32*(i%2))<<20))
		}
	}
	if closes {
		time.Sleep(20 * time.Millisecond)
		stop.Store(true)
		wg.Wait()
		require.NoError(t, c.Close())
		return
	}
	wg.Wait()
}

// deathKind is the cache of a death: one with room for all, or one that is full and has a
// cold part.
type deathKind struct {
	policy ringcache.Policy
	cold   bool
}

// open opens the cache at path.
func (k deathKind) open(t testing.TB, path string) *ringcache.Cache {
	if !k.cold {
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 64 << 20, Policy: k.policy,
			File: path})
		require.NoError(t, err)
		return c
	}
	g := ringtest.WithCold(ringtest.Tiny(4, 4096, 72), ringtest.FlateCompressor{})
	g.Policy = k.policy
	return ringtest.MustOpen(t, g, path)
}

// deathModel is what a cache may hold of one key after a death.
type deathModel map[string][]deathCall

// deathCall is a call that wrote a value: there may be none.
type deathCall struct {
	life, n uint64
	absent  bool
}

// note takes the calls of one life into the model.
func (m deathModel) note(life, worker, done uint64) {
	for n := range done + 1 { // the last one may have been under way
		op := drawDeathOp(life, worker, n)
		k := string(deathKey(worker, op.key))
		call := deathCall{life, n, op.isDel()}
		if n == done {
			m[k] = append(m[k], call)
		} else {
			m[k] = []deathCall{call}
		}
	}
}

// check compares a recovered cache with the model, and returns how many keys are missing
// that were written and have not expired.
func (m deathModel) check(
	t testing.TB, c *ringcache.Cache, counts []atomic.Uint64,
) (missing int) {
	require.NoError(t, ringtest.Validate(c))
	for w := range uint64(deathWorkers) {
		// A call on a busy machine reads the clock later than the value says.
		slowest := time.Duration(counts[deathWorkers+w].Load())
		for key := range uint16(deathKeys) {
			k := deathKey(w, key)
			calls, asked := m[string(k)], time.Now().Add(-slowest)
			v, ok := c.HasGet(nil, k)
			if !ok {
				may := len(calls) == 0
				for _, call := range calls {
					op := drawDeathOp(call.life, w, call.n)
					may = may || call.absent || op.hasTTL()
				}
				if !may {
					missing++
				}
				m[string(k)] = nil // it must not come back
				continue
			}
			right := false
			for _, call := range calls {
				op := drawDeathOp(call.life, w, call.n)
				right = right || !call.absent && isDeathValue(v, call.life, w, call.n, &op, asked)
			}
			require.True(t, right, "%s is %d bytes; may be %+v", k, len(v), calls)
		}
	}
	return missing
}

// isDeathValue reports whether v is what the call wrote, and had not expired at now.
func isDeathValue(v []byte, life, worker, n uint64, op *deathOp, now time.Time) bool {
	if len(v) != max(op.size, 24) {
		return false
	}
	want := deathValue(life, worker, n, op)
	until := int64(binary.LittleEndian.Uint64(v[16:]))
	copy(want[16:24], v[16:24])
	late := now.UnixNano() - until
	if (until != 0) != op.hasTTL() || until != 0 && late > int64(200*time.Millisecond) {
		return false
	}
	return string(want) == string(v)
}

// dieOnce runs the child for a while and kills it, when it is ready to die.
func dieOnce(
	t testing.TB, path string, life uint64, kind deathKind, after time.Duration, closes bool,
	ready func() bool,
) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^TestDeath_Child$", "-test.count=1")
	cmd.Env = append(os.Environ(), deathFile+"="+path,
		fmt.Sprintf("%s_LIFE=%d %d %t %t", deathFile, life, kind.policy, kind.cold, closes))
	out := new(ringtest.LockedBuffer)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	ended, killer := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killer) // ready is not called any more
		for wait := after; ; wait = time.Millisecond {
			select {
			case <-ended:
				return
			case <-time.After(wait):
			}
			if ready() {
				_ = cmd.Process.Kill()
				return
			}
		}
	}()
	err = cmd.Wait()
	close(ended)
	<-killer
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	require.True(t, killed || err == nil && closes, "child: %v\n%s", err, out)
}

func testDeaths(t *testing.T, kind deathKind, deaths int, seed uint64) {
	path := filepath.Join(t.TempDir(), "cache")
	r := rand.New(rand.NewPCG(seed, uint64(kind.policy)))
	model, counts := deathModel{}, ringtest.DeathCounts(t, path+".counts")
	lost, calls, recoveredOnce, packed := 0, uint64(0), 0, uint64(0)
	for life := range uint64(deaths) {
		if life%15 == 0 { // anew, before so much was written that something is evicted
			_ = os.Remove(path)
			clear(model)
		}
		for w := range deathWorkers {
			counts[w].Store(0)
		}
		closes := life%5 == 4
		begun := time.Now()
		ready := func() bool { // most lives have to get somewhere, on a busy machine too
			done := counts[0].Load()
			return done > 600 || !kind.cold && (done > 0 || life%4 == 0) ||
				time.Since(begun) > ringtest.HangLimit
		}
		after := time.Duration(r.IntN(120)) * time.Millisecond
		dieOnce(t, path, life, kind, after, closes, ready)
		for w := range uint64(deathWorkers) {
			done := counts[w].Load()
			model.note(life, w, done)
			calls += done
		}
		c := kind.open(t, path)
		if c.Stats().File.RecoveredEntries > 0 {
			recoveredOnce++
		}
		packed += ringtest.CountPacked(c)
		missing := model.check(t, c, counts)
		require.Zero(t, c.Stats().Corruptions, "life %d", life)
		if !kind.cold { // else some are evicted
			// One under way for each worker, and one that it was moving.
			require.LessOrEqual(t, missing, 2*deathWorkers, "life %d", life)
		}
		lost += missing
		if life%2 == 0 {
			require.NoError(t, c.Close())
		} else {
			ringtest.Abandon(c)
		}
	}
	t.Logf("%d deaths after %d calls, %d warm, %d entries lost, %d packed ones recovered",
		deaths, calls, recoveredOnce, lost, packed)
	require.Greater(t, recoveredOnce, deaths/4)
	if kind.cold {
		require.Greater(t, packed, uint64(deaths))
	}
}

func TestDeath_NothingWrongComesBack(t *testing.T) {
	t.Parallel()
	deaths := *ringtest.DeathRuns
	if *ringtest.LongRun {
		deaths = 1000
	}
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		t.Run(policy.String(), func(t *testing.T) {
			testDeaths(t, deathKind{policy: policy}, deaths, 1)
		})
		t.Run(policy.String()+", cold part", func(t *testing.T) {
			testDeaths(t, deathKind{policy: policy, cold: true}, deaths, 1)
		})
	}
}
