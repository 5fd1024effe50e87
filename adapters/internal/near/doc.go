// Package near is the store of a client-side cache of Redis or Valkey, in a
// [ringcache.Cache]. Two clients define the same interface for such stores, but each defines its
// own message types, so Store is generic over the message type.
//
// Users may update one module alone, so an adapter of one version may be built with a later version
// of this package. Exported identifiers therefore must not change; new ones may be added.
package near
