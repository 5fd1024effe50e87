package ringprometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	readmeRow  = regexp.MustCompile("(?m)^\\| `(ringcache_\\w+)")
	metricName = regexp.MustCompile(`\bringcache_\w+`)
	descName   = regexp.MustCompile(`fqName: "(\w+)"`)
)

// nameOf returns the full name of a metric. A description tells it only in its text.
func nameOf(m metric) string { return descName.FindStringSubmatch(m.desc.String())[1] }

// names returns those of all metrics, as a scrape shows them.
func names(t testing.TB) (all []string) {
	t.Helper()
	caches := NewCollector()
	require.NoError(t, caches.Register("pages", newCache(t)))
	families, err := registryOf(t, caches).Gather()
	require.NoError(t, err)
	for _, f := range families {
		all = append(all, f.GetName())
	}
	return all
}

// dashboard is what the tests look at in dashboard.json.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type, Definition string
		}
	}
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ RefID, Expr, LegendFormat string }
	}
}

func readDashboard(t testing.TB) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// queries returns all queries of the dashboard, with the variables filled in as Grafana
// does it.
func queries(t testing.TB) (all []string) {
	t.Helper()
	fill := strings.NewReplacer("$__rate_interval", "1m", "$cache", "pages|users")
	for _, p := range readDashboard(t).Panels {
		require.NotEmpty(t, p.Targets, "panel %s", p.Title)
		for _, target := range p.Targets {
			query := fill.Replace(target.Expr)
			require.NotContains(t, query, "$", "an unknown variable")
			all = append(all, query)
		}
	}
	return all
}

func TestDashboard_MetricsExist(t *testing.T) {
	known, asked := names(t), queries(t)
	for _, v := range readDashboard(t).Templating.List {
		asked = append(asked, v.Definition)
	}
	used := map[string]bool{}
	for _, query := range asked {
		for _, name := range metricName.FindAllString(query, -1) {
			assert.Contains(t, known, name, "in %s", query)
			used[name] = true
		}
	}
	for _, name := range known {
		assert.True(t, used[name], "no panel shows %s", name)
	}
}

func TestDashboard_Panels(t *testing.T) {
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		require.Empty(t, ids[p.ID], "the id of %s", p.Title)
		ids[p.ID] = p.Title
		require.Positive(t, p.GridPos.W*p.GridPos.H, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, "columns of %s", p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, cells[cell], "lies below %s", p.Title)
				cells[cell] = p.Title
			}
		}
		for _, target := range p.Targets {
			require.Contains(t, target.LegendFormat, "{{cache}}", p.Title)
		}
	}
}

// The queries of the dashboard, put into a file of rules, and the alerts.
func TestRules_Check(t *testing.T) {
	promtool := tool(t, "promtool")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for i, query := range queries(t) {
		rules = append(rules, rule{fmt.Sprint("dashboard:", i), query})
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"groups": []any{map[string]any{"name": "dashboard", "rules": rules}},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	for _, args := range [][]string{
		{"check", "rules", file},
		{"check", "rules", "alerts.yml"},
		{"test", "rules", "alerts_test.yml"},
	} {
		out, err := exec.Command(promtool, args...).CombinedOutput()
		require.NoError(t, err, "promtool %v: %s", args, out)
	}
}

func TestAlerts_MetricsExist(t *testing.T) {
	text, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	used := metricName.FindAllString(string(text), -1)
	require.NotEmpty(t, used)
	known := names(t)
	for _, name := range used {
		require.Contains(t, known, name)
	}
}
