// Package room contains the tests of how memory is divided: policy, bounds, Resize, Sizing and
// Stats.
package room
