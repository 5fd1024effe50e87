package main

import (
	"testing"

	"github.com/ringcache/ringcache/adapters/internal/neartest"
)

func TestMain(m *testing.M) { neartest.CompareMain(m, main) }

func TestCompare_PrintsTheTable(t *testing.T) { neartest.Compare(t, target) }
