package ringtest

import (
	"maps"
	"reflect"
	"strings"
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
	for _, v := range []reflect.Type{
		reflect.TypeFor[*ringcache.Namespace](), reflect.TypeFor[*ringcache.Typed[string, []byte]](),
	} {
		name, _, _ := strings.Cut(v.Elem().Name(), "[")
		for i := range v.NumMethod() {
			methods = append(methods, name+"."+v.Method(i).Name)
		}
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
		"Save": ofAll, "SaveToFile": ofAll,
		"UpdateStats": ofAll, "WriteSnapshot": ofAll, "Namespace": ofAll,
		"Namespaces": ofAll, "Options": ofAll,
		"Len":   "to count the entries of a view, a loop goes over all; Namespace.Stats has them",
		"Reset": "Namespace.Invalidate does it in constant time",
	}
	onlyBytes := map[string]string{
		"HasGet": "Get tells a miss from a value",
		"Stats":  "a view in a namespace has those of the namespace, another has none",
	}
	ofView := map[string]string{
		"Drop": "of a namespace", "Invalidate": "of a namespace",
	}
	names := func(v reflect.Type) map[string]bool {
		all := map[string]bool{}
		for i := range v.NumMethod() {
			all[v.Method(i).Name] = true
		}
		return all
	}
	ofCache := names(reflect.TypeFor[*ringcache.Cache]())
	for _, v := range []struct {
		methods map[string]bool
		lacks   []map[string]string
	}{
		{names(reflect.TypeFor[*ringcache.Namespace]()), []map[string]string{onlyCache}},
		{names(reflect.TypeFor[*ringcache.Typed[string, int]]()),
			[]map[string]string{onlyCache, onlyBytes}},
	} {
		missing := maps.Clone(ofCache)
		for _, reasons := range v.lacks {
			for name := range reasons {
				require.True(t, missing[name], "%s is no method of Cache", name)
				require.False(t, v.methods[name], "%s is there", name)
				delete(missing, name)
			}
		}
		for name := range v.methods {
			_, own := ofView[name]
			require.True(t, own || ofCache[name], "Cache has no %s", name)
			delete(missing, name)
		}
		require.Empty(t, missing, "methods of Cache that a view lacks without a reason")
	}
}
