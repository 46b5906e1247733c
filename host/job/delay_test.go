package job

import (
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

func TestDelay(t *testing.T) {
	within := []string{"/within/before", "/within/after", "/within/after", "1s"}
	for _, c := range []struct {
		delay  []string
		config string
		want   int64
		err    string
	}{
		{nil, `{"allowedLateness":"5s"}`, 0, ""},
		{[]string{"/allowedLateness"}, `{"allowedLateness":"5s"}`, 5000, ""},
		{[]string{"/allowedLateness"}, `{"allowedLateness":"1h30m5s7ms"}`, 5_407_000 - 2000 + 7, ""},
		{[]string{"/allowedLateness"}, `{"allowedLateness":"0"}`, 0, ""},
		{[]string{"/allowedLateness"}, `{"size":"5s"}`, 0, ""},
		{[]string{"/allowedLateness"}, `{"allowedLateness":null}`, 0, ""},
		{within, `{"within":{"before":"2s","after":"3s"}}`, 9000, ""},
		{within, `{"within":{"after":"3\u0073"}}`, 7000, ""},
		{within, `{}`, 0, ""},
		{[]string{"1d"}, `{}`, 86_400_000, ""},
		{[]string{"/a"}, `{"a":5}`, 0, "/a in the config is no text"},
		{[]string{"/a"}, `{"a":"5"}`, 0, `"5" is not a duration`},
		{[]string{"/a"}, `{"a":""}`, 0, `"" is not a duration`},
		{[]string{"/a"}, `{"a":"-5s"}`, 0, `"-5s" is not a duration`},
		{[]string{"/a"}, `{"a":"9223372036854775807d"}`, 0, `is not a duration`},
	} {
		got, err := Delay(&abi.Manifest{Delay: c.delay}, []byte(c.config))
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%v over %s: %d, %v; want %d", c.delay, c.config, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%v over %s: %d, %v; want an error with %q", c.delay, c.config, got, err, c.err)
		}
	}
}
