package hostile

import "slices"

// attacks are all cases: those of research, the encodings, and our own.
var attacks = slices.Concat(loadAttacks, runAttacks, restAttacks, encodingAttacks, frameAttacks, ownRunAttacks, ownLoadAttacks)

// pending are the cases that wait for something, with what it is. A case on this list that passes fails the test.
var pending = map[string]string{
	"E9":  "select with other than one type gets to the engine",
	"F2":  "the engine's own stack ends before the count of depth",
	"F3":  "the engine's own stack ends before the count of depth",
	"F4":  "the engine's own stack ends before the count of depth",
	"O1":  "memory.grow costs nothing that counts",
	"O10": "active segments can still be copied from",
	"O24": "labels are not counted over a module",
	"O31": "whole modules of functions just under their limits",
}
