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
