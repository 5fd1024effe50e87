// Package ringtest contains the helpers that the tests of ringcache share: caches of any shape,
// values that identify their keys, a model of the answers that a cache may give, random operations,
// traffic from many goroutines, Compressors and memory that fail, and a validator of the invariants
// in docs/design.md. Only tests import it. The tests themselves are in its folders, by topic.
//
// Flags of the test binaries: -ringcache.long makes randomized tests run longer, -ringcache.file
// gives caches a file, -ringcache.cold a cold part, and -ringcache.deaths kills more processes.
package ringtest
