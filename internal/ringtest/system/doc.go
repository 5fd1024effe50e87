// Package system has the tests of what the operating system does: refused memory, faults, resident
// memory, large pages and full disks.
package system
