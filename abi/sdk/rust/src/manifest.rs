//! Finds fields and ports in the manifest while the transform is compiled, so that a wrong name does not compile.

/// A declared field: its position among the `fields` of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub(crate) at: u32,
    pub(crate) pointer: &'static str,
}

impl Field {
    /// The field that the manifest's first input declares by this JSON pointer. In a `const` a missing one is a compile error.
    pub const fn of(manifest: &str, pointer: &'static str) -> Field {
        Field::of_input(manifest, 0, pointer)
    }

    /// The same for input number `input`, counted from 0.
    pub const fn of_input(manifest: &str, input: usize, pointer: &'static str) -> Field {
        let b = manifest.as_bytes();
        let list = element(b, member(b, 0, b"inputs"), input);
        let list = member(b, list, b"fields");
        Field { at: position(b, list, pointer.as_bytes(), b""), pointer }
    }
}

/// Names several fields of the manifest's first input: `fields! { MANIFEST, ORIGIN = "/origin", DEST = "/dest" }` declares the
/// constants `ORIGIN` and `DEST`, each as by [`Field::of`].
#[macro_export]
macro_rules! fields {
    ($manifest:expr, $($name:ident = $pointer:literal),+ $(,)?) => {
        $(const $name: $crate::Field = $crate::Field::of($manifest, $pointer);)+
    };
}

/// A declared output: its position among the manifest's `outputs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub(crate) u16);

impl Port {
    /// The output of this name. In a `const` a missing one is a compile error.
    pub const fn of(manifest: &str, name: &str) -> Port {
        let b = manifest.as_bytes();
        Port(position(b, member(b, 0, b"outputs"), name.as_bytes(), b"name") as u16)
    }

    /// The output `out` of a module without a manifest.
    pub const OUT: Port = Port(0);
}

/// The position of a declared table.
pub(crate) const fn table(manifest: &str, name: &str) -> u16 {
    let b = manifest.as_bytes();
    position(b, member(b, 0, b"tables"), name.as_bytes(), b"name") as u16
}

/// A manifest as the array that the custom section holds.
pub const fn section<const N: usize>(manifest: &str) -> [u8; N] {
    let (b, mut out, mut i) = (manifest.as_bytes(), [0; N], 0);
    while i < N {
        out[i] = b[i];
        i += 1;
    }
    out
}

const fn skip(b: &[u8], mut at: usize) -> usize {
    while matches!(b[at], b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') {
        at += 1;
    }
    at
}

/// One past the value at `at`. Manifest names and pointers that are looked up hold no escapes.
const fn end(b: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    loop {
        match b[at] {
            b'"' => {
                at += 1;
                while b[at] != b'"' {
                    at += if b[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'{' | b'[' => {
                (depth, at) = (depth + 1, at + 1);
                continue;
            }
            b'}' | b']' => (depth, at) = (depth - 1, at + 1),
            _ => {
                at += 1;
                if depth > 0 || !matches!(b[at], b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
                    continue;
                }
            }
        }
        if depth == 0 {
            return at;
        }
    }
}

const fn same(b: &[u8], from: usize, to: usize, want: &[u8]) -> bool {
    if to - from != want.len() + 2 {
        return false;
    }
    let mut i = 0;
    while i < want.len() {
        if b[from + 1 + i] != want[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Where the member of the object at `at` lies.
const fn member(b: &[u8], at: usize, name: &[u8]) -> usize {
    let mut at = skip(b, at);
    assert!(b[at] == b'{', "the manifest: an object was expected");
    at = skip(b, at + 1);
    while b[at] != b'}' {
        let after = end(b, at);
        let value = skip(b, after);
        if same(b, at, after, name) {
            return value;
        }
        at = skip(b, end(b, value));
    }
    panic!("the manifest has no inputs, fields, outputs, columns, tables or name where one was expected")
}

/// Where element n of the array at `at` lies.
const fn element(b: &[u8], at: usize, n: usize) -> usize {
    assert!(b[at] == b'[', "the manifest: an array was expected");
    let (mut at, mut i) = (skip(b, at + 1), 0);
    while b[at] != b']' {
        if i == n {
            return at;
        }
        at = skip(b, end(b, at));
        i += 1;
    }
    panic!("the manifest has no such input")
}

/// The position in the array at `at` of the string `want`, or of the object whose member `by` is that string.
const fn position(b: &[u8], at: usize, want: &[u8], by: &[u8]) -> u32 {
    assert!(b[at] == b'[', "the manifest: an array was expected");
    let (mut at, mut i) = (skip(b, at + 1), 0);
    while b[at] != b']' {
        let item = if by.is_empty() { at } else { member(b, at, by) };
        if same(b, item, end(b, item), want) {
            return i;
        }
        at = skip(b, end(b, at));
        i += 1;
    }
    panic!("the manifest does not declare this field, output or table")
}

/// Where the text of an output's columns begins and ends, without its quotes.
pub(crate) const fn columns(b: &[u8], output: &[u8]) -> (usize, usize) {
    let outputs = member(b, 0, b"outputs");
    let at = element(b, outputs, position(b, outputs, output, b"name") as usize);
    let text = member(b, at, b"columns");
    assert!(b[text] == b'"', "the manifest: columns are a text");
    (text + 1, end(b, text) - 1)
}
