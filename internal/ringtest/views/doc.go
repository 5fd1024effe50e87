// Package views has the tests of typed views.
package views
