// Package near is the store of a client-side cache of Redis or Valkey, in a
// [ringcache.Cache]. Two clients have the same interface for such stores, each with message
// types of its own, so a Store has the type of the message as its parameter.
//
// An adapter of one version may be built with a later version of this package, since a user
// may update one module alone. What is exported here stays as it is, and new functions are
// added beside it.
package near
