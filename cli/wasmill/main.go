//go:build !386 && !arm && !mips && !mipsle

// Command wasmill runs WebAssembly transforms over streams, in micro-batches, exactly once.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/wasmill/wasmill/cli"
)

func main() {
	if why := refusal(strconv.IntSize); why != "" {
		fmt.Fprintln(os.Stderr, why)
		os.Exit(cli.ExitFailure)
	}
	os.Exit(cli.Run(context.Background(), os.Args, cli.System()))
}

// refusal says why the program does not run on a machine with words of so many bits, or nothing.
func refusal(bits int) string {
	if bits >= 64 {
		return ""
	}
	return "wasmill: this is a " + strconv.Itoa(bits) + "-bit build; wasmill needs a 64-bit platform, such as linux/amd64 or linux/arm64: " +
		"on 32 bits its state and its files do not fit into the address space"
}
