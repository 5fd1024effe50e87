package ringfiber_test

import (
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/gofiber/fiber/v3"
	fibercache "github.com/gofiber/fiber/v3/middleware/cache"
	"github.com/gofiber/fiber/v3/middleware/session"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringfiber"
)

func Example() {
	cache := ringcache.New(256 << 20) // 256 MB, for all middlewares together
	defer cache.Close()

	app := fiber.New()
	app.Use(session.New(session.Config{
		Storage: ringfiber.New(cache, ringfiber.Options{Prefix: "session:"}),
	}))
	app.Use(fibercache.New(fibercache.Config{
		Storage: ringfiber.New(cache, ringfiber.Options{Prefix: "page:", Responses: true}),
	}))
	app.Get("/planet", func(c fiber.Ctx) error { return c.SendString("Saturn") })

	for range 2 {
		resp, err := app.Test(httptest.NewRequest("GET", "/planet", nil))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(resp.StatusCode, resp.Header.Get("X-Cache"))
	}
	// Output:
	// 200 miss
	// 200 hit
}
