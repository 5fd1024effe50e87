// Package loads contains the tests of GetOrLoad and GetOrLoadBatch.
package loads
