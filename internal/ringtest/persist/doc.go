// Package persist has the tests of files and snapshots: what comes back, damage, and killed
// processes.
package persist
