//! Writes JSON into a buffer that is used again and again.

use crate::decimal::Dec;

/// Appends an integer.
#[inline]
pub fn int(to: &mut Vec<u8>, n: i64) {
    Dec::int(n).write(to);
}

/// True when a string's bytes can stand in JSON as they are.
#[inline]
fn plain(text: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = text.as_chunks::<8>();
    let special = |w: u64| {
        let (q, s) = (w ^ (ONES * b'"' as u64), w ^ (ONES * b'\\' as u64));
        (w.wrapping_sub(ONES * 0x20) & !w | q.wrapping_sub(ONES) & !q | s.wrapping_sub(ONES) & !s) & (ONES << 7)
    };
    words.iter().all(|w| special(u64::from_le_bytes(*w)) == 0) && rest.iter().all(|&c| c >= 0x20 && c != b'"' && c != b'\\')
}

/// Appends a string with quotes and the shortest escapes.
#[inline]
pub fn string(to: &mut Vec<u8>, text: &[u8]) {
    to.push(b'"');
    if plain(text) {
        to.extend_from_slice(text);
    } else {
        escape(to, text);
    }
    to.push(b'"');
}

#[cold]
fn escape(to: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for &c in text {
        match c {
            b'"' | b'\\' => to.extend_from_slice(&[b'\\', c]),
            b'\n' => to.extend_from_slice(b"\\n"),
            b'\r' => to.extend_from_slice(b"\\r"),
            b'\t' => to.extend_from_slice(b"\\t"),
            8 => to.extend_from_slice(b"\\b"),
            12 => to.extend_from_slice(b"\\f"),
            0..0x20 => to.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[usize::from(c >> 4)], HEX[usize::from(c & 15)]]),
            _ => to.push(c),
        }
    }
}

/// Appends the characters of a string's text (without quotes). What is no valid escape, or half a surrogate pair, becomes
/// U+FFFD.
pub fn unescape(raw: &[u8], to: &mut Vec<u8>) {
    let mut at = 0;
    while at < raw.len() {
        if raw[at] != b'\\' {
            let end = raw[at..].iter().position(|c| *c == b'\\').map_or(raw.len(), |n| at + n);
            to.extend_from_slice(&raw[at..end]);
            at = end;
            continue;
        }
        let c = raw.get(at + 1).copied().unwrap_or(0);
        at += 2;
        let plain = match c {
            b'"' | b'\\' | b'/' => c,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (ch, next) = unicode(raw, at);
                to.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
                at = next;
                continue;
            }
            _ => {
                to.extend_from_slice("\u{fffd}".as_bytes());
                continue;
            }
        };
        to.push(plain);
    }
}

/// The character of the four digits at `at`, with its second half if it has one, and where it ends.
fn unicode(raw: &[u8], at: usize) -> (char, usize) {
    let Some(high) = hex4(raw, at) else {
        return ('\u{fffd}', at);
    };
    if let Some(c) = char::from_u32(high) {
        return (c, at + 4);
    }
    if high < 0xdc00
        && raw.get(at + 4..at + 6) == Some(b"\\u")
        && let Some(low) = hex4(raw, at + 6)
        && (0xdc00..0xe000).contains(&low)
    {
        let c = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(c).unwrap_or('\u{fffd}'), at + 10);
    }
    ('\u{fffd}', at + 4)
}

fn hex4(raw: &[u8], at: usize) -> Option<u32> {
    raw.get(at..at + 4)?.iter().try_fold(0, |n, &c| Some(n * 16 + char::from(c).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back() {
        for text in ["", "plain", "quo\"te \\ back", "line\nline\ttab\r\u{8}\u{c}\u{1}", "grün 🙂", "a long one with a \" at its end\""] {
            let mut json = Vec::new();
            string(&mut json, text.as_bytes());
            let mut back = Vec::new();
            unescape(&json[1..json.len() - 1], &mut back);
            assert_eq!(String::from_utf8(back).unwrap(), text);
        }
    }

    #[test]
    fn escapes_of_others() {
        for (raw, want) in [(r"\u00e9\/", "é/"), (r"\ud83d\ude42", "🙂"), (r"\ud83d", "\u{fffd}"), (r"\x", "\u{fffd}"), (r"\u12", "\u{fffd}12")] {
            let mut to = Vec::new();
            unescape(raw.as_bytes(), &mut to);
            assert_eq!(String::from_utf8(to).unwrap(), want, "{raw}");
        }
    }
}
