// Package views contains the tests of typed views.
package views
