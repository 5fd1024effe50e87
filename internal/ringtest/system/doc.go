// Package system has the tests of what the operating system does: refused memory, faults, resident
// memory and large pages.
package system
