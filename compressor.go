package ringcache

// Compressor makes the cold part of a cache smaller (Options.Compressor). Packages
// compress/s2 and compress/zstd have one each. The methods are called without any lock, and
// may be called by several goroutines at once. A Compressor that errs, panics or returns
// other bytes costs at most that entry: it is kept uncompressed, or becomes a miss.
type Compressor interface {
	// ID names the format and its version, in up to 64 bytes. What one Compressor has
	// compressed is decompressed by another one only if both have the same ID. A cache in
	// a file that was left by another Compressor drops what that has compressed.
	ID() string

	// BuildDict returns a dictionary for values like samples, or nil if it needs none. It
	// must not keep the samples, which are of one size class: up to 128 KB together. The cache
	// keeps the dictionary, of 1 MB at most, on the Go heap, and with Options.File in the
	// file File + ".dict".
	BuildDict(samples [][]byte) []byte

	// WithDict returns a compressor of values that uses a dictionary that BuildDict has
	// returned, perhaps in another process; nil is none. The cache has up to 16 of them.
	WithDict(dict []byte) (ValueCompressor, error)
}

// ValueCompressor compresses and decompresses single values. Both methods append to dst, as
// the built-in append does, must neither keep nor change src, and are called by several
// goroutines at once.
type ValueCompressor interface {
	// Compress appends the compressed form of src to dst and returns the extended slice.
	// The cache keeps it if the record is then at least an eighth smaller.
	Compress(dst, src []byte) ([]byte, error)

	// Decompress appends the size bytes of which src is the compressed form. It must return
	// an error if src decompresses to another length, and not allocate for more: dst has room
	// for size bytes.
	Decompress(dst, src []byte, size int) ([]byte, error)
}
