# What the suites share that run a module of their own. A run sources it after it has read its
# arguments.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export GOWORK=off GOFLAGS=-mod=mod

# module prints the directory of a module at a version, after fetching it.
module() { (cd "$tmp" && go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }

# init_module makes the current directory a module that uses this one, ringcache, and the caches in
# the versions of bench/go.mod.
init_module() {
	go mod init suite >init.log 2>&1 || { cat init.log >&2; exit 1; }
	go mod edit -require github.com/ringcache/ringcache@v0.1.0 \
		-require github.com/ringcache/ringcache/bench@v0.1.0 \
		-replace "github.com/ringcache/ringcache=$root" \
		-replace "github.com/ringcache/ringcache/bench=$root/bench"
	cp "$root/bench/go.sum" .
}

go -C "$root/bench" build -o "$tmp/medians" ./suites/medians
