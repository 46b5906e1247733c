// Package clienttls is TLS as connections of a job file set it up: this program is the client. It must not dial, nor know
// what is on the other side.
package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Settings say how a connection is encrypted. Certificates and keys are PEM texts, so that `${file:..}` brings them in.
type Settings struct {
	// CA are the certificates that the server's are checked with; "" means the system's.
	CA string `json:"ca,omitempty"`
	// Cert and Key are this client's, when the server asks for one.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// ServerName is the name in the server's certificate; "" means the host that is dialled.
	ServerName string `json:"serverName,omitempty"`
	// Insecure takes any certificate.
	Insecure bool `json:"insecureSkipVerify,omitempty"`
}

// Config makes the settings ready for use, or says what is wrong with them.
func (t *Settings) Config() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("ca holds no certificate in PEM form")
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("cert and key belong together")
	}
	if t.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
		if err != nil {
			return nil, err
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
