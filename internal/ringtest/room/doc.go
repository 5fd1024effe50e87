// Package room contains the tests of how memory is divided: policy, bounds, Resize and
// Stats.
package room
