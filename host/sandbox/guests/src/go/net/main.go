// Command net asks for all that a guest cannot have: a web server's answer, a file, a folder. A record becomes the errors.
package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"github.com/wasmill/wasmill/host/sandbox/guests/src/go/orders"
)

func init() { orders.Each = record }

func main() {}

func record(out, v []byte, _ uint32) ([]byte, bool) {
	_, file := fs.ReadFile(os.DirFS("/"), "etc/hostname")
	_, folder := os.ReadDir(".")
	response, net := http.Get("http://127.0.0.1:1/")
	if net == nil {
		net = response.Body.Close()
	}
	return fmt.Appendf(out, "%d bytes; %v; %v; %v", len(v), file, folder, net), true
}
