package rows

import (
	"errors"
	"testing"

	"github.com/wasmill/wasmill/host/sink"
)

func TestUpdates(t *testing.T) {
	for name, tt := range map[string]struct {
		append     func(dst, key, value []byte) ([]byte, error)
		key, value []byte
		want       string // "" is a misfit
		code       string
	}{
		"upsert":            {AppendKeyed, []byte(`["AA","J\u0046K"]`), []byte(`{"n":1}`), `x{"key":"[\"AA\",\"J\\u0046K\"]","value":{"n":1}}`, ""},
		"delete":            {AppendKeyed, []byte("a"), nil, `x{"key":"a","value":null}`, ""},
		"empty key":         {AppendKeyed, []byte{}, []byte("1"), `x{"key":"","value":1}`, ""},
		"no key":            {AppendKeyed, nil, []byte("1"), "", "missing"},
		"key of bytes":      {AppendKeyed, []byte{0xff}, []byte("1"), "", "type"},
		"deletion":          {deletion, []byte("a\n"), nil, `x{"deleted":true,"key":"a\n"}`, ""},
		"deletion of none":  {deletion, nil, nil, "", "missing"},
		"deletion of bytes": {deletion, []byte{0x80}, nil, "", "type"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tt.append([]byte("x"), tt.key, tt.value)
			var misfit *sink.Misfit
			switch {
			case tt.want != "" && (err != nil || string(got) != tt.want):
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			case tt.want == "" && (!errors.As(err, &misfit) || misfit.Code != tt.code || string(got) != "x"):
				t.Errorf("%s, %v; want a misfit %s", got, err, tt.code)
			}
		})
	}
}

func deletion(dst, key, _ []byte) ([]byte, error) { return AppendDeletion(dst, key) }
