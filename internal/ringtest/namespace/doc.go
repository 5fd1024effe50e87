// Package namespace contains the tests of namespaces.
package namespace
