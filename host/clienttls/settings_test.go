package clienttls

import (
	"crypto/tls"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		set  Settings
		want string // of the error
	}{
		"none":             {},
		"a name":           {set: Settings{ServerName: "broker.example", Insecure: true}},
		"no authority":     {Settings{CA: "rubbish"}, "ca holds no certificate"},
		"a key alone":      {Settings{Key: "k"}, "belong together"},
		"a cert alone":     {Settings{Cert: "c"}, "belong together"},
		"no PEM in either": {Settings{Cert: "c", Key: "k"}, "PEM"},
	} {
		conf, err := c.set.Config()
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			continue
		}
		if err != nil || conf.MinVersion != tls.VersionTLS12 || conf.ServerName != c.set.ServerName || conf.InsecureSkipVerify != c.set.Insecure {
			t.Errorf("%s: %+v, %v", name, conf, err)
		}
	}
}
