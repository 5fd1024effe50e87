// Package lincheck checks small concurrent histories of a ringcache for
// linearizability, with porcupine. It holds tests only, and is a module of its
// own so that the library does not depend on the checker.
//
// A history is linearizable if all calls could have happened one at a time,
// each at some instant between its begin and its end, with the same answers.
// A cache may drop an entry at any time, so a miss is always possible; but what
// has missed once stays gone until it is set again.
//
//	go test ./...                    about 16 seconds
//	go test ./... -lincheck.time 10m
package lincheck
