package source_test

import (
	"testing"

	"github.com/wasmill/wasmill/host/source"
)

func TestLeftOut(t *testing.T) {
	for want, l := range map[string]source.LeftOutError{
		"a: it is gone: left out: 3 rows, 1 byte":        {Records: 3, Bytes: 1, Unit: "row"},
		"a: it is gone: left out: 1 line":                {Records: 1, Bytes: -1, Unit: "line"},
		"a: it is gone: left out: 0 bytes":               {Records: -1},
		"a: it is gone: left out: how much is not known": {Records: -1, Bytes: -1, Unit: "line"},
	} {
		l.Split, l.Detail = "a", "it is gone"
		if got := l.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
