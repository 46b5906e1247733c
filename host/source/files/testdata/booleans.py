"""Makes booleans-1.parquet and booleans-2.parquet, with data pages of either version, and booleans.jsonl, their rows.

Run it with the Python that .ci/readers/install.sh prints, in this folder. Written with pyarrow 26.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq

rows = [
    {
        "id": i,
        "required": i < 300 or i % 7 == 0,
        "optional": None if i % 5 == 4 else (i < 200 or 400 < i < 500),
        "list": None if i % 11 == 0 else [True] * (i % 4) + ([None, False] if i % 3 == 0 else []),
        "none": None,
        "in": None if i % 50 == 0 else {"x": i % 90 < 45, "y": i},
    }
    for i in range(600)
]
schema = pa.schema([
    pa.field("id", pa.int32()),
    pa.field("required", pa.bool_(), nullable=False),
    pa.field("optional", pa.bool_()),
    pa.field("list", pa.list_(pa.bool_())),
    pa.field("none", pa.bool_()),
    pa.field("in", pa.struct([("x", pa.bool_()), ("y", pa.int32())])),
])
table = pa.Table.from_pylist(rows, schema)
for version in "1", "2":
    pq.write_table(
        table, f"booleans-{version}.parquet", data_page_version=version + ".0", row_group_size=250, data_page_size=64, write_batch_size=64,
        compression="snappy" if version == "1" else "zstd", use_dictionary=False,
    )
with open("booleans.jsonl", "w") as f:
    f.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
