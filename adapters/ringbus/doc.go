// Package ringbus removes entries from the caches of all instances of a service, over a system that
// publishes messages to subscribers, such as NATS and Redis.
//
//	bus := ringbus.New(cache, transport, ringbus.Options{})
//	go bus.Run(ctx)
//
//	user, err := cache.GetOrLoad(ctx, nil, key, loadUser) // as without a bus
//
//	if err := writeUser(ctx, user); err != nil { ... } // the database first
//	err = bus.Del(ctx, key)                            // then all caches
//
// The README has transports for NATS and Redis.
//
// # What a reader may see
//
// Write the database, then call Del, which publishes a message and then removes the key here. Once
// Del has returned, even with an error, later calls of GetOrLoad in this process return the written
// value or a later one. Another instance may return the old value until the message arrives or, if
// that fails, until a later one does. Once the transport has reported that an instance has lost its
// subscription, the instance empties its cache every [Options].MaxStale until it has a new one. A
// client that moves between instances may see a key go back to an older value.
//
// Only GetOrLoad and GetOrLoadBatch may store entries: a load that a Del overtakes is not stored,
// but a Set may store a value that has become old. Loads must not read a replica that lags behind.
// If the process dies between the write and the message, or a message is lost silently, instances
// may keep the old value until it expires: set [ringcache.Options].TTL.
package ringbus
