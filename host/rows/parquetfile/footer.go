package parquetfile

import "github.com/wasmill/wasmill/host/rows"

// Numbers of parquet.thrift.
const (
	typeBoolean   = 0
	typeInt32     = 1
	typeInt64     = 2
	typeFloat     = 4
	typeDouble    = 5
	typeByteArray = 6
	typeFixed     = 7

	optional = 1

	convertedUTF8            = 0
	convertedDecimal         = 5
	convertedDate            = 6
	convertedTimestampMicros = 10

	logicalString    = 1
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTimestamp = 8

	encodingPlain         = 0
	encodingRLE           = 3
	encodingRLEDictionary = 8

	pageData       = 0
	pageDictionary = 2
)

// footer returns the FileMetaData.
func (w *Writer) footer() []byte {
	t := &w.thrift
	t.reset()
	t.i32(1, 1)
	t.list(2, compactStruct, len(w.columns)+1)
	t.open(0)
	t.string(4, "schema")
	t.i32(5, int32(len(w.columns)))
	t.close()
	for _, c := range w.columns {
		schemaElement(t, w.schema.Column(c))
	}
	t.i64(3, w.rows)
	t.list(4, compactStruct, len(w.groups))
	for n, g := range w.groups {
		w.rowGroup(t, g, n)
	}
	t.string(6, w.opts.CreatedBy)
	t.list(7, compactStruct, len(w.columns))
	for range w.columns {
		t.open(0)
		t.open(1) // TypeDefinedOrder: without it min_value and max_value mean nothing
		t.close()
		t.close()
	}
	return t.end()
}

func physical(t rows.Type) int32 {
	switch t.Kind {
	case rows.Boolean:
		return typeBoolean
	case rows.Int32, rows.Date:
		return typeInt32
	case rows.Int64, rows.Timestamp:
		return typeInt64
	case rows.Float:
		return typeFloat
	case rows.Double:
		return typeDouble
	case rows.Decimal:
		switch {
		case t.Precision <= 9:
			return typeInt32
		case t.Precision <= 18:
			return typeInt64
		}
		return typeFixed
	}
	return typeByteArray
}

func schemaElement(t *compact, c rows.Column) {
	t.open(0)
	p := physical(c.Type)
	t.i32(1, p)
	if p == typeFixed {
		t.i32(2, int32(wideSize(c.Type.Precision)))
	}
	t.i32(3, optional)
	t.string(4, c.Name)
	switch c.Type.Kind {
	case rows.String:
		t.i32(6, convertedUTF8)
		logical(t, logicalString, nil)
	case rows.Date:
		t.i32(6, convertedDate)
		logical(t, logicalDate, nil)
	case rows.Timestamp:
		t.i32(6, convertedTimestampMicros)
		logical(t, logicalTimestamp, func() {
			t.bool(1, true)
			t.open(2)
			t.open(2) // MICROS
			t.close()
			t.close()
		})
	case rows.Decimal:
		t.i32(6, convertedDecimal)
		t.i32(7, int32(c.Type.Scale))
		t.i32(8, int32(c.Type.Precision))
		logical(t, logicalDecimal, func() {
			t.i32(1, int32(c.Type.Scale))
			t.i32(2, int32(c.Type.Precision))
		})
	}
	t.close()
}

func logical(t *compact, member int16, fields func()) {
	t.open(10)
	t.open(member)
	if fields != nil {
		fields()
	}
	t.close()
	t.close()
}

func (w *Writer) rowGroup(t *compact, g rowGroup, ordinal int) {
	var plain, packed int64
	t.open(0)
	t.list(1, compactStruct, len(g.chunks))
	for i, ch := range g.chunks {
		plain += ch.plain
		packed += ch.packed
		t.open(0)
		t.i64(2, ch.offset)
		t.open(3)
		w.columnMeta(t, ch, w.schema.Column(w.columns[i]))
		t.close()
		t.close()
	}
	t.i64(2, plain)
	t.i64(3, g.rows)
	t.i64(5, g.chunks[0].offset)
	t.i64(6, packed)
	if ordinal < 1<<15 {
		t.i16(7, int16(ordinal))
	}
	t.close()
}

func (w *Writer) columnMeta(t *compact, ch chunk, c rows.Column) {
	t.i32(1, physical(c.Type))
	encodings := []int64{encodingPlain, encodingRLE}
	if ch.dict {
		encodings = append(encodings, encodingRLEDictionary)
	}
	t.list(2, compactI32, len(encodings))
	for _, e := range encodings {
		t.varint(e)
	}
	t.list(3, compactBinary, 1)
	t.binary([]byte(c.Name))
	t.i32(4, codecIDs[w.opts.Codec])
	t.i64(5, ch.values)
	t.i64(6, ch.plain)
	t.i64(7, ch.packed)
	t.i64(9, ch.dataOffset)
	if ch.dict {
		t.i64(11, ch.offset)
	}
	t.open(12)
	t.i64(3, ch.stats.nulls)
	if lo, hi, ok := ch.stats.bounds(); ok {
		t.bytes(5, hi)
		t.bytes(6, lo)
	}
	t.close()
}
