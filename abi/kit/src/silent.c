/* Imports nothing, so that only its manifest says which ABI it speaks; drops everything. */
#include "guest.h"

#ifndef BARE
WM_MANIFEST({"abi": 1, "name": "silent", "version": "1.0.0", "inputs": [{"name": "in"}], "outputs": [{"name": "out"}]});
#endif

BATCH(f) { return 0; }
