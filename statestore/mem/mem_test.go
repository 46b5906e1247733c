package mem_test

import (
	"testing"

	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
	"github.com/wasmill/wasmill/statestore/statestoretest"
)

func TestConformance(t *testing.T) {
	statestoretest.Run(t, func(*testing.T) statestore.Opener { return mem.New().Open })
}
