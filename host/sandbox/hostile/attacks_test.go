package hostile

import "slices"

// attacks are all cases: those of research, the encodings, and our own.
var attacks = slices.Concat(loadAttacks, runAttacks, restAttacks, encodingAttacks, frameAttacks, ownRunAttacks, ownLoadAttacks, rewriteAttacks, debugAttacks, yieldAttacks, productAttacks, stateAttacks)

// pending are the cases that wait for something, with what it is. A case on this list that passes fails the test.
var pending = map[string]string{}
