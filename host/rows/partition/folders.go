package partition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
)

// Null is what Hive and Spark call the folder of null.
const Null = "__HIVE_DEFAULT_PARTITION__"

// What common file systems take: of one name, and of a whole path.
const (
	MaxName = 255
	MaxPath = 4095
)

// maxColumn leaves room in a folder's name for null and for any value that is not a text.
const maxColumn = MaxName - len("=") - 48

// Columns checks the names of the columns that become folders and returns their places in the schema.
func Columns(schema *rows.Schema, names []string) ([]int, error) {
	var columns []int
	for i, name := range names {
		at := schema.Index(name)
		if at < 0 {
			return nil, fmt.Errorf("partitionBy: the schema has no column %q", name)
		}
		if n := len(AppendEscaped(nil, []byte(name))); n > maxColumn {
			return nil, fmt.Errorf("partitionBy: the name of column %.40q has %d bytes in a directory's name; %d is the most", name, n, maxColumn)
		}
		if k := schema.Column(at).Type.Kind; !namesFolders(k) {
			return nil, fmt.Errorf("partitionBy: column %q is a %s, which makes no good directory name", name, k)
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("partitionBy names column %q twice", name)
		}
		columns = append(columns, at)
	}
	if len(names) == schema.Len() {
		return nil, errors.New("partitionBy leaves no column for the files")
	}
	return columns, nil
}

// namesFolders reports whether equal values of a kind have one text, and a text that people read.
func namesFolders(k rows.Kind) bool {
	switch k {
	case rows.String, rows.Boolean, rows.Int8, rows.Int16, rows.Int32, rows.Int64, rows.Decimal, rows.Timestamp, rows.TimestampNTZ, rows.Date:
		return true
	}
	return false
}

// AppendDir appends a row's folder, relative to where the folders begin.
func AppendDir(dst []byte, t *rows.Table, columns []int, row int) []byte {
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = appendFolder(dst, t.Schema().Column(c).Name, t.Column(c), row)
	}
	return dst
}

// appendFolder appends "name=value" as Spark names the folder.
func appendFolder(dst []byte, name string, v *rows.Vector, row int) []byte {
	dst = append(AppendEscaped(dst, []byte(name)), '=')
	if v.Valid[row] == 0 {
		return append(dst, Null...)
	}
	switch v.Type.Kind {
	case rows.String:
		return AppendEscaped(dst, v.Bytes(row))
	case rows.Timestamp, rows.TimestampNTZ:
		var text [32]byte
		return AppendEscaped(dst, rows.AppendTimestamp(text[:0], v.I64[row], ' ', false))
	}
	return v.AppendText(dst, row)
}

// AppendEscaped escapes as Spark's ExternalCatalogUtils does. NUL, which Spark leaves and no file system takes, is escaped
// like the other control characters.
func AppendEscaped(dst, text []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range text {
		if c < 0x20 || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0 {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
