package postgres

import (
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestCopyReaderClosed: what still reads after the connection was given up finds nothing, though the rows are used anew.
func TestCopyReaderClosed(t *testing.T) {
	schema, err := rows.NewSchema([]rows.Column{{Name: "t", Type: rows.Type{Kind: rows.String}}})
	if err != nil {
		t.Fatal(err)
	}
	table := rows.NewTable(schema)
	var refs []sql.Ref
	for i := range 50_000 {
		if err := table.Append([]byte(`{"t":"a text of some length"}`)); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, sql.Ref{Row: uint32(i)})
	}
	r := newCopyReader([]field{{form: asText}}, &sql.Rows{Tables: []*rows.Table{table}, Refs: refs}, nil)
	began, closed := make(chan struct{}), make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		buf := make([]byte, 1000)
		for n := 0; ; n++ {
			if n == 2 {
				close(began)
				<-closed
			}
			if _, err := r.Read(buf); err != nil {
				if !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("read on: %v", err)
				}
				return
			}
		}
	})
	<-began
	if cap(r.close()) == 0 {
		t.Error("the buffer is lost")
	}
	table.Reset()
	close(closed)
	sender.Wait()
}
