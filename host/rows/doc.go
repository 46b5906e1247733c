// Package rows turns a record's bytes, one JSON object or one binary row, into a typed row and keeps rows by column.
//
// A Schema names the columns in order, which may nest; a Table takes one row at a time in a single pass and holds the values
// column by column, ready for an encoder. What does not fit its column exactly is a *sink.Misfit, and the table stays as it was:
// nothing is rounded, cut or silently made null. The package also writes values as text for csv and for directory names, and
// copies rows between tables. It opens no file and knows no batch; file formats live in folders below it.
//
// The conversion is a step of its own with a version, because it settles which records of a batch count:
//
//   - a key without a column is skipped (it must be well formed); a missing key and null are null; of equal keys the last
//     one counts; column names are matched exactly, after unescaping;
//   - int8 to int64, decimal: any JSON number whose value is exactly representable ("1e2", "1.0"); a fraction, or more
//     fractional digits than the scale, is a misfit, trailing zeros are not;
//   - float, double: any JSON number, rounded to nearest even as IEEE 754 says, unless it overflows; "NaN", "Infinity" and
//     "-Infinity" as strings;
//   - boolean: true and false;
//   - a number, true or false may also stand in a string, as csv has them: alone, without blanks, and by the rules
//     above. An empty string is a misfit, not null;
//   - string: a JSON string of valid Unicode; a number, true or false as it is written. An object or an array is a misfit;
//   - a string stands for its text, however it is escaped;
//   - binary: a string of padded standard base64;
//   - timestamp: an RFC 3339 string with any offset, years 0001 to 9999 of UTC, at most microseconds apart from trailing
//     zeros; with a unit also an integer that counts it since 1970, in the same years; date: YYYY-MM-DD in the same years;
//   - timestamp_ntz: the same date and time, with T or a blank between, and no offset; one with an offset is a misfit;
//   - list: an array; struct: an object, by the rules for rows; map: an object, whose names are strings that stand for keys by
//     the rules above. A key that comes twice is a misfit, also in two writings of one value;
//   - null, and what is missing, is a misfit where the type says so. Of several misfits the first in the input counts.
//
// Binary rows are those of abi/README.md; each value is held to the same ranges.
package rows

// Version numbers the conversion rules. It is raised when any input would make another row, or become a misfit or cease
// to be one.
const Version = 1
