// Package model contains the tests that compare a cache with a model of its permitted answers:
// random operations, fuzzing, and goroutines whose histories are checked.
package model
