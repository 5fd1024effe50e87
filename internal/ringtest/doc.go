// Package ringtest is what the tests of ringcache share: caches of any shape, values that tell
// whose they are, a model of what a cache may answer, random operations, traffic of many
// goroutines, Compressors and memory that fail, and a validator of the invariants in
// docs/design.md. Only tests import it. The tests themselves are in its folders, by topic.
//
// Flags of the test binaries: -ringcache.long has randomised tests run longer, -ringcache.file
// gives caches a file, -ringcache.cold a cold part, and -ringcache.deaths kills more processes.
package ringtest
