package abi

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// orders are JSON records as the benchmarks of this project use them: seven members, 223 bytes on average.
func orders(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	const letters = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"
	out := make([][]byte, n)
	for i := range out {
		b := fmt.Appendf(nil, `{"order_id":%d,"customer":"c-%06d","amount":%d.%02d,"currency":"%s","status":"%s","created_at":"2024-01-01T00:%02d:%02d.%03dZ","note":"`,
			i, r.IntN(10000), r.IntN(5000), r.IntN(100), []string{"EUR", "USD", "GBP"}[r.IntN(3)],
			[]string{"new", "paid", "shipped", "cancelled"}[r.IntN(4)], r.IntN(60), r.IntN(60), r.IntN(1000))
		for range 60 + r.IntN(51) {
			b = append(b, letters[r.IntN(len(letters))])
		}
		out[i] = append(b, `"}`...)
	}
	return out
}

// flights are records of nineteen short members, with nulls, as the example job reads them.
func flights(n int) [][]byte {
	r := rand.New(rand.NewPCG(3, 4))
	out := make([][]byte, n)
	for i := range out {
		number := func(from, to int) string {
			if r.IntN(40) == 0 {
				return "null"
			}
			return strconv.Itoa(from + r.IntN(to-from))
		}
		out[i] = fmt.Appendf(nil, `{"year":2013,"month":1,"day":%d,"dep_time":%s,"sched_dep_time":%d,"dep_delay":%s,"arr_time":%s,"sched_arr_time":%d,"arr_delay":%s,"carrier":"%s","flight":%d,"tailnum":"N%dUA","origin":"%s","dest":"IAH","air_time":%s,"distance":%d,"hour":5,"minute":%d,"time_hour":"2013-01-01T%02d:00:00Z"}`,
			1+r.IntN(31), number(500, 2300), 500+r.IntN(1800), number(-20, 300), number(1, 2359), r.IntN(2359), number(-40, 300),
			[]string{"UA", "AA", "B6"}[r.IntN(3)], r.IntN(6000), 10000+r.IntN(9999), []string{"EWR", "LGA", "JFK"}[r.IntN(3)],
			number(30, 600), 100+r.IntN(3000), r.IntN(60), r.IntN(24))
	}
	return out
}
