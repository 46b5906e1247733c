// Command chaos does all that a Go program has to be undetermined by: the order of maps, goroutines and select, garbage
// collection, addresses, time and randomness, floats that are infinite or not a number, encoding/json. A record becomes what
// all of this came to.
package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/wasmill/wasmill/host/sandbox/guests/src/go/orders"
)

func init() { orders.Each = record }

func main() {}

var (
	seen    = map[string]float64{}
	garbage [][]byte
)

func record(out, v []byte, index uint32) ([]byte, bool) {
	for i, word := range strings.FieldsFunc(string(v), func(r rune) bool { return strings.ContainsRune(`{}[]",:`, r) }) {
		seen[word] = math.Sqrt(seen[word]*1.7+float64(i)) / (float64(len(word)) - 4)
	}
	var b strings.Builder
	n := 0
	for word, x := range seen {
		if n++; n > 20 {
			break
		}
		fmt.Fprintf(&b, "%s=%x ", word, math.Float64bits(math.Log(x)))
	}
	b.WriteString(race())
	for i := range 50 {
		garbage = append(garbage, make([]byte, 1000+i))
	}
	if len(garbage) > 2000 {
		garbage = nil
	}
	if index%100 == 0 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Fprintf(&b, "%s %d %d %v %d %d %d", rand.Text(), mathrand.Uint64(), time.Until(time.Unix(0, 0)), os.Environ(), stats.NumGC, stats.Mallocs, stats.HeapAlloc)
	var any map[string]any
	if json.Unmarshal(v, &any) != nil {
		return out, false
	}
	any["chaos"] = b.String()
	text, err := json.Marshal(any)
	return append(out, text...), err == nil
}

// race is the order in which eight goroutines came through, as two channels and a mutex saw it.
func race() string {
	var mu sync.Mutex
	var wg sync.WaitGroup
	a, z := make(chan int, 4), make(chan int, 4)
	order := ""
	for i := range 8 {
		wg.Go(func() {
			runtime.Gosched()
			if i%2 == 0 {
				a <- i
			} else {
				z <- i
			}
			mu.Lock()
			defer mu.Unlock()
			order += fmt.Sprint(i)
		})
	}
	for range 8 {
		select {
		case i := <-a:
			order += fmt.Sprint("a", i)
		case i := <-z:
			order += fmt.Sprint("z", i)
		}
	}
	wg.Wait()
	return order + " "
}
