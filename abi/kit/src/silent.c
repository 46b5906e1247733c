/* Imports nothing, so that only its manifest says which ABI it speaks; drops everything. */
#include "guest.h"

#ifndef BARE
WM_MANIFEST({"abi": 1, "name": "silent"});
#endif

BATCH(f) { return 0; }
