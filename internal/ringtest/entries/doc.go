// Package entries contains the tests of entries: batches, conditions, expiry, loops and OnRemove.
package entries
