/* Passes every record on and, from the other port, makes a change of it: under the key that it names, the record, or a deletion
 * where it says that the key is gone. */
#include "../../abi/sdk/c/wasmill.h"

WM_MANIFEST({"abi": 1, "name": "changes", "version": "1.0.0",
             "inputs": [{"name": "in", "content": "json", "fields": ["/key", "/gone"]}],
             "outputs": [{"name": "all", "content": "json"}, {"name": "changes", "content": "json"}]});

enum { KEY, GONE };
enum { ALL, CHANGES };

static int on_record(const wm_record *r) {
    wm_pass(r, ALL);
    wm_begin(r, CHANGES);
    wm_put_slice(wm_text(wm_field(r, KEY)));
    wm_as_key();
    if (wm_field(r, GONE).kind == WM_TRUE) {
        wm_end_null();
        return 0;
    }
    wm_put_slice(wm_value_of(r));
    wm_end();
    return 0;
}

WM_TRANSFORM(.record = on_record);
