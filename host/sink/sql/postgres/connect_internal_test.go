package postgres

import (
	"net"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestConnectTimeout: a server that takes a connection and says nothing is given up after the time that the job says.
func TestConnectTimeout(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	db, err := New("db", "postgres://u:secret@"+silent.Addr().String()+"/d?sslmode=disable&connect_timeout=86400")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Connect(t.Context(), sql.Use{Limits: sql.Limits{Connect: 50 * time.Millisecond, Statement: time.Second}})
	if err == nil {
		conn.Close(t.Context())
		t.Fatal("a silent server is connected to")
	}
	if p := db.Explain(err); p.Code != sql.CodeTimeout || !p.Passing {
		t.Errorf("%+v: %v", p, err)
	}
}

// TestPasswords: any password can be given, in the URL and beside it.
func TestPasswords(t *testing.T) {
	const password = "p@s/#?%[ ,:w"
	for name, address := range map[string]string{
		"percent-encoded": "postgres://u:p%40s%2F%23%3F%25%5B%20%2C%3Aw@h:5432/d?sslmode=disable",
		"a parameter":     "postgres://u@h:5432/d?sslmode=disable&password=p@s/%23?%25[%20,:w",
		"environment":     "postgres://u@h:5432/d?sslmode=disable",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "environment" {
				t.Setenv("PGPASSWORD", password)
			}
			db, err := New("db", address)
			if err != nil {
				t.Fatal(err)
			}
			if c := db.config; c.Password != password || c.User != "u" || c.Host != "h" || c.Database != "d" {
				t.Errorf("%s@%s/%s, password %q", c.User, c.Host, c.Database, c.Password)
			}
		})
	}
	if _, err := New("db", "postgres://h/d?user=me@server&password=x"); err != nil {
		t.Error(err)
	}
}
