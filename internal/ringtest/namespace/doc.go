// Package namespace has the tests of namespaces.
package namespace
