package ringtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The calls of the operating system are made to fail in turn: a child process runs under a seccomp
// filter that hands its calls to the test, which answers some of them itself. The calls are real,
// so nothing in the library has to stand in for the system.

// Answer is what the system answers to one call of a child, or to several.
type Answer struct {
	Call  string // such as "fallocate"
	Nth   int    // the first of these calls that gets the answer, from 1; 0: none
	Last  int    // the last of them; 0: all that follow
	Errno unix.Errno
	Short bool          // reads and writes transfer half of the bytes, without an error
	Delay time.Duration // before the call is made as usual
}

// Answered is a child whose calls get answers.
type Answered struct {
	Dir string // calls that name other files are let pass, but for those below /proc and /sys

	cmd     *exec.Cmd
	control *os.File
	replies *bufio.Reader
	filter  int // descriptor that receives the calls
	dead    atomic.Bool

	mu    sync.Mutex
	rule  Answer
	count map[string]int
}

// systemCalls are the calls that a child hands over. Of those of memory, only the ones that the
// library makes are counted: see isOurs.
var systemCalls = map[uint32]string{
	unix.SYS_OPENAT: "openat", unix.SYS_NEWFSTATAT: "fstatat", unix.SYS_FSTAT: "fstat",
	unix.SYS_FLOCK: "flock", unix.SYS_FALLOCATE: "fallocate", unix.SYS_FTRUNCATE: "ftruncate",
	unix.SYS_MMAP: "mmap", unix.SYS_MUNMAP: "munmap", unix.SYS_MADVISE: "madvise",
	unix.SYS_PREAD64: "pread", unix.SYS_PWRITE64: "pwrite", unix.SYS_READ: "read",
	unix.SYS_WRITE: "write", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
	unix.SYS_MSYNC: "msync", unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2",
	unix.SYS_RENAME: "rename", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_FCHMOD: "fchmod",
	unix.SYS_FSTATFS: "fstatfs", unix.SYS_STATFS: "statfs", unix.SYS_IOCTL: "ioctl",
	unix.SYS_GETDENTS64: "getdents", unix.SYS_MKDIRAT: "mkdirat", unix.SYS_READLINKAT: "readlinkat",
	unix.SYS_LSEEK: "lseek", unix.SYS_GETCWD: "getcwd",
}

const (
	answeredEnv = "RINGCACHE_TEST_ANSWERED"

	// Anonymous mappings from leastMap bytes on are the library's, as are the addresses from
	// leastAddress on, which the system chooses, with up to 32 random bits for a page. Below are
	// the Go heap, and a program that is loaded at a random address.
	leastMap     = 1 << 20
	leastAddress = 0x6600_0000_0000
)

// StartAnswered starts the calling test again as a child whose calls of the system get answers, and
// skips the test where the system has no such filters.
func StartAnswered(t *testing.T, dir string) *Answered {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "child")
	defer theirs.Close()
	exe, err := os.Executable()
	require.NoError(t, err)
	a := &Answered{Dir: dir, control: ours, replies: bufio.NewReader(ours), count: map[string]int{}}
	a.cmd = exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.count=1")
	a.cmd.Env = append(os.Environ(), answeredEnv+"="+t.Name(),
		"GOGC=off", "GODEBUG=asyncpreemptoff=1")
	a.cmd.ExtraFiles = []*os.File{theirs}
	out := &strings.Builder{}
	a.cmd.Stdout, a.cmd.Stderr = out, out
	require.NoError(t, a.cmd.Start())
	go func() {
		_ = a.cmd.Wait()
		a.dead.Store(true)
	}()
	t.Cleanup(func() {
		a.control.Close()
		_ = a.cmd.Process.Kill()
		for !a.dead.Load() {
			time.Sleep(time.Millisecond)
		}
		if t.Failed() {
			t.Logf("the child wrote:\n%s", out)
		}
	})
	a.filter = a.receiveFilter(t)
	go a.answerAll()
	return a
}

// receiveFilter returns the descriptor on which the child's calls arrive.
func (a *Answered) receiveFilter(t *testing.T) int {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(int(a.control.Fd()), b, oob, unix.MSG_CMSG_CLOEXEC)
	require.NoError(t, err)
	require.Equal(t, 1, n, "the child ended before it began")
	if b[0] != 'f' {
		t.Skip("the system has no filter for its calls here")
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	require.NoError(t, err)
	fds, err := unix.ParseUnixRights(&messages[0])
	require.NoError(t, err)
	return fds[0]
}

// Answer sets what the system answers from now on, and returns the calls that were made since the
// last Answer.
func (a *Answered) Answer(rule Answer) map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rule = rule
	count := a.count
	a.count = map[string]int{}
	return count
}

// Ask sends the child a line, and returns its reply: an error if it died, or takes longer than
// limit.
func (a *Answered) Ask(line string, limit time.Duration) (string, error) {
	if _, err := a.control.WriteString(line + "\n"); err != nil {
		return "", fmt.Errorf("the child is gone: %w", err)
	}
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := a.replies.ReadString('\n')
		got <- result{strings.TrimSuffix(line, "\n"), err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			r.err = fmt.Errorf("the child died: %w", r.err)
		}
		return r.line, r.err
	case <-time.After(limit):
		_ = a.cmd.Process.Signal(unix.SIGQUIT) // prints its stacks
		return "", errors.New("the child does not answer")
	}
}

// notification and response are struct seccomp_notif and struct seccomp_notif_resp of
// linux/seccomp.h.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    uint32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// answerAll answers the child's calls until it is dead.
func (a *Answered) answerAll() {
	for !a.dead.Load() {
		fds := []unix.PollFd{{Fd: int32(a.filter), Events: unix.POLLIN}}
		if n, _ := unix.Poll(fds, 100); n <= 0 || fds[0].Revents&unix.POLLIN == 0 {
			continue
		}
		var n notification
		if !a.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) {
			continue // the thread was interrupted meanwhile
		}
		r := a.respond(&n)
		a.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	}
	unix.Close(a.filter)
}

// ioctl calls ioctl on the filter's descriptor.
func (a *Answered) ioctl(request uintptr, arg unsafe.Pointer) bool {
	// Sound: the kernel reads and writes one struct of the request's size, only during the call.
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(a.filter), request, uintptr(arg))
	return errno == 0
}

// respond decides about one call.
func (a *Answered) respond(n *notification) response {
	pass := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	name := systemCalls[n.nr]
	if !a.isOurs(name, n) {
		return pass
	}
	a.mu.Lock()
	a.count[name]++
	nth, rule := a.count[name], a.rule
	a.mu.Unlock()
	if rule.Call != name || rule.Nth == 0 || nth < rule.Nth || rule.Last != 0 && nth > rule.Last {
		return pass
	}
	time.Sleep(rule.Delay)
	switch {
	case rule.Short:
		if done, ok := a.transfer(name, n); ok {
			return response{id: n.id, val: int64(done)}
		}
		return pass
	case rule.Errno != 0:
		return response{id: n.id, errno: -int32(rule.Errno)}
	}
	return pass
}

// isOurs reports whether the library has made a call, and not the Go runtime, the test, or the C
// library, which aborts where it gets no stack for a thread: its code is at an address that the
// system chose.
func (a *Answered) isOurs(name string, n *notification) bool {
	if n.ip >= leastAddress {
		return false
	}
	path := ""
	switch name {
	case "madvise", "munmap", "msync":
		return n.args[0] >= leastAddress
	case "mmap":
		fd := int32(n.args[4])
		if fd == -1 { // the Go heap has other addresses
			return n.args[1] >= leastMap && (n.args[0] == 0 || n.args[0] >= leastAddress)
		}
		path = a.link(n, fd)
	case "openat", "fstatat", "renameat", "renameat2", "unlinkat", "mkdirat", "readlinkat":
		path = a.text(n, n.args[1])
		if name == "fstatat" && path == "" {
			path = a.link(n, int32(n.args[0]))
		}
	case "rename", "statfs":
		path = a.text(n, n.args[0])
	case "getcwd":
		return true
	default:
		path = a.link(n, int32(n.args[0]))
	}
	isSystem := strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/")
	return strings.HasPrefix(path, a.Dir) || isSystem && !strings.HasSuffix(path, "/statm")
}

// link returns the path of a descriptor of the child.
func (a *Answered) link(n *notification, fd int32) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, fd))
	return path
}

// text returns the path at an address of the child.
func (a *Answered) text(n *notification, at uint64) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 4096)
	got, _ := f.ReadAt(b[:4096-at%4096], int64(at)) // the page's end, then the next page
	more, _ := f.ReadAt(b[got:], int64(at)+int64(got))
	path, _, _ := strings.Cut(string(b[:got+more]), "\x00")
	return filepath.Clean(path)
}

// transfer performs half of a read or a write on behalf of the child.
func (a *Answered) transfer(name string, n *notification) (done int, ok bool) {
	pid, err := unix.PidfdOpen(a.cmd.Process.Pid, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(pid)
	fd, err := unix.PidfdGetfd(pid, int(int32(n.args[0])), 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.pid), os.O_RDWR, 0)
	if err != nil {
		return 0, false
	}
	defer mem.Close()
	b := make([]byte, (n.args[2]+1)/2)
	at, off := int64(n.args[1]), int64(n.args[3])
	switch name {
	case "write", "pwrite":
		if _, err = mem.ReadAt(b, at); err != nil {
			return 0, false
		}
		if name == "write" {
			done, err = unix.Write(fd, b)
		} else {
			done, err = unix.Pwrite(fd, b, off)
		}
	case "read", "pread":
		if name == "read" {
			done, err = unix.Read(fd, b)
		} else {
			done, err = unix.Pread(fd, b, off)
		}
		if err == nil {
			_, err = mem.WriteAt(b[:done], at)
		}
	}
	return done, err == nil
}

// ServeAnswered is the child's side of StartAnswered: it installs the filter, and calls reply for
// each line until the test ends. It returns false in a process that is no such child.
func ServeAnswered(t *testing.T, reply func(line string) string) bool {
	if os.Getenv(answeredEnv) != t.Name() {
		return false
	}
	const fd = 3 // of the socket
	if !installFilter(fd) {
		require.NoError(t, unix.Sendmsg(fd, []byte{'n'}, nil, nil, 0))
	}
	control := os.NewFile(fd, "control")
	for lines := bufio.NewScanner(control); lines.Scan(); {
		_, err := control.WriteString(reply(lines.Text()) + "\n")
		require.NoError(t, err)
	}
	return true
}

// installFilter makes all threads of the process hand over the systemCalls, and sends the
// descriptor on which they arrive. Between the two, a thread of the runtime may wait for an answer
// with the heap's lock, or the only P: no step there allocates or asks for a P.
func installFilter(socket int) bool {
	const load, jumpIfEqual, result = 0x20, 0x15, 0x06 // BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
	const allow, notify = 0x7fff0000, 0x7fc00000       // SECCOMP_RET_ALLOW, _USER_NOTIF
	program := []unix.SockFilter{{Code: load}}         // the call's number
	left := len(systemCalls)
	for nr := range systemCalls {
		program = append(program, unix.SockFilter{Code: jumpIfEqual, Jt: uint8(left), K: nr})
		left--
	}
	program = append(program,
		unix.SockFilter{Code: result, K: allow}, unix.SockFilter{Code: result, K: notify})
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	first, rights := []byte{'f'}, unix.UnixRights(0)
	iov := unix.Iovec{Base: &first[0], Len: 1}
	message := unix.Msghdr{Iov: &iov, Iovlen: 1, Control: &rights[0],
		Controllen: uint64(len(rights))}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	// Sound: the kernel copies the program and the message during the calls.
	filter, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_TSYNC|
			unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return false
	}
	binary.NativeEndian.PutUint32(rights[unix.CmsgLen(0):], uint32(filter))
	_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(socket),
		uintptr(unsafe.Pointer(&message)), 0)
	return errno == 0
}
