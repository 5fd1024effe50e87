// Package lincheck checks small concurrent histories of a ringcache for
// linearizability with porcupine. It contains only tests, and is a separate
// module so that the library does not depend on the checker.
//
// A history is linearizable if each call appears to take effect at some instant
// between its start and its end, so that all calls executed one at a time in
// that order return the same results. A cache may drop an entry at any time, so
// a miss is always possible, but a key that has missed keeps missing until it
// is set again.
//
//	go test ./...                    about 16 seconds
//	go test ./... -lincheck.time 10m
package lincheck
