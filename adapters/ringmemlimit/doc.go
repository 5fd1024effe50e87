// Package ringmemlimit adjusts the MaxBytes of a [ringcache.Cache] and GOMEMLIMIT to the memory
// limit of the container and to the memory use of the rest of the program.
//
//	cache := ringcache.New(1 << 30) // Start sets the bound again
//	defer cache.Close()
//	controller, err := ringmemlimit.Start(cache, ringmemlimit.Options{MinBytes: 128 << 20})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer controller.Close()
//
// The heap comes first: the program may use [Options.Share] of the limit, and the cache gets what
// the heap leaves of that, between MinBytes and MaxBytes. It shrinks when the heap needs the room,
// and grows when there has been more room for a while. The limit is the cgroup's, version 1 or 2,
// or else the memory of the machine. The package works only on Linux.
package ringmemlimit
