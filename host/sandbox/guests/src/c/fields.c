/* Orders with the fields that the host located, by the C SDK. */
#include "wasmill.h"

WM_MANIFEST({"abi": 1, "name": "orders", "version": "1.0.0",
             "inputs": [{"name": "orders", "content": "json", "fields": ["/status", "/amount_usd"]}],
             "outputs": [{"name": "orders", "content": "json"}]});

enum { STATUS, AMOUNT };

static int on_record(const wm_record *r) {
    int64_t cents;
    if (wm_is(wm_field(r, STATUS), WM_S("cancelled"))) return 0;
    if (!wm_scaled(wm_field(r, AMOUNT), 2, &cents)) return wm_dead(r, 1, WM_S("amount_usd is not a number"));
    wm_begin(r, 0);
    wm_put_head(wm_value_of(r));
    WM_MEMBER("amount_eur");
    wm_put_scaled((cents * 92 + 50) / 100, 2);
    WM_PUT("}");
    wm_end();
    return 0;
}

WM_TRANSFORM(.record = on_record);
