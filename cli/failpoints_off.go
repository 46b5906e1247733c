//go:build !failpoints

package cli

import (
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/statestore"
)

// failpoints is where the build for kill tests ends the process on purpose; this build never does.
func failpoints(*Env, *engine.Events, *statestore.Events) func(durable.Files) durable.Files {
	return nil
}
