// Package system contains the tests of effects of the operating system: refused memory, faults,
// resident memory and large pages.
package system
