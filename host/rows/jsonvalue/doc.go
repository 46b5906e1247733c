// Package jsonvalue is what the decoders and encoders of binary formats share: values as JSON text, and JSON text as values.
//
// One rule holds for all formats, the same that csv and parquet files are read by:
//
//   - numbers are exact, whatever their size: a 64-bit integer, signed or not, is a JSON number, never a string; a decimal is
//     a number with as many fractional digits as its scale;
//   - a float is the shortest text that reads back the same; NaN, Infinity and -Infinity are strings;
//   - bytes are padded standard base64;
//   - a time stamp is RFC 3339 with Z and six fractional digits, nine when the last three are not all zero; one without a
//     zone is the same without the Z; a date is YYYY-MM-DD; a time of day is hh:mm:ss with six or nine digits. Years are
//     0001 to 9999, and what lies outside has no text;
//   - a UUID has its five groups in lower case.
//
// Back, a text is read as package rows does: numbers by their exact value however they are written ("1e2" is 100), also
// when they stand in a string alone, floats rounded to nearest even; what does not fit is a *sink.Misfit and never rounded,
// cut or made null. Of equal keys the last one counts.
//
// The package knows no schema, opens nothing and keeps nothing between documents.
package jsonvalue
