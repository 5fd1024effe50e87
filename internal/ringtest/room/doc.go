// Package room has the tests of who may hold how much: policy, bounds, Resize, Sizing and Stats.
package room
