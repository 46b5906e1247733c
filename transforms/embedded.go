package transforms

import _ "embed"

// Convert is the built module of the transform convert, from Rust.
//
//go:embed convert/convert-rust.wasm
var Convert []byte
