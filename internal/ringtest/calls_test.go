package ringtest

import (
	"maps"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// What is not in the table is not tested by those who go through it.
func TestEveryCall_NamesAllMethods(t *testing.T) {
	var methods, table []string
	for m, i := reflect.TypeFor[*ringcache.Cache](), 0; i < m.NumMethod(); i++ {
		methods = append(methods, m.Method(i).Name)
	}
	for _, c := range EveryCall() {
		table = append(table, c.Name)
	}
	require.Equal(t, methods, table, "both are in order of names")

	methods, table = nil, nil
	for i, v := 0, reflect.TypeFor[*ringcache.Cache](); i < v.NumMethod(); i++ {
		switch name := v.Method(i).Name; name {
		case "Namespace", "Namespaces", "DropNamespace": // a namespace has none
		default:
			methods = append(methods, "Namespace."+name)
		}
	}
	for i, v := 0, reflect.TypeFor[*ringcache.Typed[string, []byte]](); i < v.NumMethod(); i++ {
		methods = append(methods, "Typed."+v.Method(i).Name)
	}
	for _, c := range ViewCalls() {
		table = append(table, c.Name)
	}
	require.ElementsMatch(t, methods, table)
}

// A view has the methods of a cache, but for those named here with a reason.
func TestViews_HaveTheMethodsOfCache(t *testing.T) {
	const ofAll = "it is about the whole cache"
	onlyCache := map[string]string{
		"Close": ofAll, "DeleteExpired": ofAll, "ReadSnapshot": ofAll, "Resize": ofAll,
		"Save": ofAll, "SaveToFile": ofAll, "DropNamespace": ofAll,
		"UpdateStats": ofAll, "WriteSnapshot": ofAll, "Namespace": ofAll,
		"Namespaces": ofAll, "Options": ofAll,
	}
	onlyBytes := map[string]string{
		"HasGet": "Get tells a miss from a value",
		"Stats":  "its cache has them",
	}
	names := func(v reflect.Type) map[string]bool {
		all := map[string]bool{}
		for i := range v.NumMethod() {
			all[v.Method(i).Name] = true
		}
		return all
	}
	ofCache := names(reflect.TypeFor[*ringcache.Cache]())
	methods, missing := names(reflect.TypeFor[*ringcache.Typed[string, int]]()), maps.Clone(ofCache)
	for _, reasons := range []map[string]string{onlyCache, onlyBytes} {
		for name := range reasons {
			require.True(t, missing[name], "%s is no method of Cache", name)
			require.False(t, methods[name], "%s is there", name)
			delete(missing, name)
		}
	}
	for name := range methods {
		require.True(t, ofCache[name], "Cache has no %s", name)
		delete(missing, name)
	}
	require.Empty(t, missing, "methods of Cache that a view lacks without a reason")
}
