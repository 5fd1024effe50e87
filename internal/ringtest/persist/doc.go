// Package persist contains the tests of files and snapshots: restored contents, damage, full disks,
// and killed processes.
package persist
