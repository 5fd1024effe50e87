// Package loads has the tests of GetOrLoad and GetOrLoadBatch.
package loads
