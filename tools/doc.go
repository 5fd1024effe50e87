// Package tools holds nothing but the versions of the programs that the checks
// run: see the tool directives of its go.mod.
package tools
