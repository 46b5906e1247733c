/* state.h: the host's functions for state, which the C SDK's header of layouts does not import. */
#ifndef STATE_H
#define STATE_H

#include "guest.h"

WM_IMPORT("wasmill_1", "state_read") u32 host_read(void *ops, u32 count, void *buf, u32 cap, u32 *need);
WM_IMPORT("wasmill_1", "state_write") void host_write(void *ops, u32 count);

WM_MANIFEST({"abi": 1, "name": "state", "version": "1.0.0", "inputs": [{"name": "in"}], "outputs": [{"name": "out"}],
             "tables": [{"name": "first"}, {"name": "second", "type": "json"}]});

#endif
