// throw-away: profile of load
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/ringcache/ringcache"
)

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
func sys() float64 {
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	return float64(u.Stime.Sec) + float64(u.Stime.Usec)/1e6
}

func main() {
	path := os.Args[2]
	if os.Args[1] == "save" {
		c := ringcache.New(4000000 * (2*116 + 64))
		k, v := make([]byte, 16), make([]byte, 100)
		for i := 0; i < 4000000; i++ {
			binary.LittleEndian.PutUint64(k, uint64(i)*0x9E3779B97F4A7C15)
			copy(k[8:], "key-suff")
			for j := range v {
				v[j] = byte(i>>(j%4*8)) ^ byte(j/16)
			}
			c.Set(k, v)
		}
		if err := c.SaveToFile(path); err != nil {
			panic(err)
		}
		return
	}
	if len(os.Args) > 3 {
		f, _ := os.Create(os.Args[3])
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	a, s, t := cpu(), sys(), time.Now()
	c, err := ringcache.LoadFromFile(path)
	if err != nil {
		panic(err)
	}
	fmt.Printf("wall %.3f cpu %.3f sys %.3f\n", time.Since(t).Seconds(), cpu()-a, sys()-s)
	_ = c
}
