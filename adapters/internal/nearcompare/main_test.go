package nearcompare_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/internal/nearcompare"
)

func TestRun_Refuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":       {"a"},
		"no entries":        {"-entries", "0"},
		"no rounds":         {"-rounds", "0"},
		"no reads":          {"-ops", "0"},
		"a value too short": {"-value", "7"},
		"an unknown flag":   {"-no-such-flag"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, nearcompare.Run(nearcompare.Target{}, args, nil, new(strings.Builder)))
		})
	}
}
