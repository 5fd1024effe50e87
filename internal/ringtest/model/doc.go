// Package model has the tests that hold a cache against a model of what it may answer: random
// operations, fuzzing, and goroutines whose histories are checked.
package model
