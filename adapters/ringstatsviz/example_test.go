package ringstatsviz_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringstatsviz"
)

func Example() {
	pages := ringcache.New(32 << 20)
	defer pages.Close()

	mux := http.NewServeMux()
	page, err := ringstatsviz.Mount(mux, map[string]*ringcache.Cache{"pages": pages})
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()

	// A program would call http.ListenAndServe("localhost:8080", mux), and the page would be at
	// http://localhost:8080/debug/statsviz/.
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest("GET", ringstatsviz.Path, nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
