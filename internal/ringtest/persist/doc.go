// Package persist has the tests of files and snapshots: what comes back, damage, full disks, and
// killed processes.
package persist
