//! Exact numbers: decimal text to integers and back, without floating point.

/// The integer a JSON number's text stands for; `None` unless it is a plain integer (no fraction, no exponent) in 64 bits.
#[inline]
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    let mut n: u64 = 0;
    for &c in digits {
        let d = c.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        if n >= 922_337_203_685_477_580 {
            n = n.checked_mul(10)?.checked_add(u64::from(d))?;
            continue;
        }
        n = n * 10 + u64::from(d);
    }
    signed(negative, n)
}

/// A JSON number's value times 10^`scale`, rounded half up (a half goes away from zero); `None` when the text is no JSON
/// number or the result does not fit 64 bits. No precision is lost on the way, however long the text is.
#[inline]
pub fn parse_scaled(text: &[u8], scale: u32) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.len() > 18 || scale > 8 {
        return parse_scaled_long(negative, digits, scale);
    }
    let (mut n, mut left, mut seen) = (0u64, u32::MAX, 0u32);
    let mut up = false;
    for &c in digits {
        let d = c.wrapping_sub(b'0');
        if d > 9 {
            if c != b'.' || left != u32::MAX || seen == 0 {
                return parse_scaled_long(negative, digits, scale);
            }
            (left, seen) = (scale, 0);
            continue;
        }
        seen += 1;
        match left {
            u32::MAX => n = n * 10 + u64::from(d),
            0 => up |= seen == scale + 1 && d >= 5,
            _ => {
                n = n * 10 + u64::from(d);
                left -= 1;
            }
        }
    }
    if seen == 0 {
        return None;
    }
    if left == u32::MAX {
        left = scale;
    }
    let n = n.checked_mul(10u64.pow(left))?.checked_add(u64::from(up))?;
    signed(negative, n)
}

/// The general case: any length, any scale, exponents. Only the first digit that is cut off decides the rounding.
#[cold]
fn parse_scaled_long(negative: bool, text: &[u8], scale: u32) -> Option<i64> {
    let whole = text.iter().take_while(|c| c.is_ascii_digit()).count();
    let (int, rest) = text.split_at(whole);
    let (frac, rest) = match rest {
        [b'.', r @ ..] => {
            let n = r.iter().take_while(|c| c.is_ascii_digit()).count();
            if n == 0 {
                return None;
            }
            r.split_at(n)
        }
        _ => (&rest[..0], rest),
    };
    if int.is_empty() {
        return None;
    }
    let exponent = parse_exponent(rest)?;
    // The digits that count are those before the shifted decimal point.
    let keep = int.len() as i64 + exponent + i64::from(scale);
    let (mut n, mut up) = (0u64, false);
    for (i, c) in int.iter().chain(frac).enumerate() {
        let d = u64::from(c - b'0');
        if (i as i64) < keep {
            n = n.checked_mul(10)?.checked_add(d)?;
        } else if i as i64 == keep {
            up = d >= 5;
        }
    }
    for _ in (int.len() + frac.len()) as i64..keep {
        if n == 0 {
            break;
        }
        n = n.checked_mul(10)?;
    }
    signed(negative, n.checked_add(u64::from(up))?)
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let digits = match text {
        [] => return Some(0),
        [b'e' | b'E', b'+', d @ ..] => d,
        [b'e' | b'E', b'-', d @ ..] => d,
        [b'e' | b'E', d @ ..] => d,
        _ => return None,
    };
    if digits.is_empty() {
        return None;
    }
    let mut n: i64 = 0;
    for &c in digits {
        if !c.is_ascii_digit() {
            return None;
        }
        n = (n * 10 + i64::from(c - b'0')).min(1 << 40);
    }
    Some(if text[1] == b'-' { -n } else { n })
}

#[inline(always)]
fn signed(negative: bool, n: u64) -> Option<i64> {
    if negative { 0i64.checked_sub_unsigned(n) } else { i64::try_from(n).ok() }
}

/// `a / b` rounded half up (a half goes away from zero); `None` when b is 0 or the quotient does not fit.
#[inline]
pub fn div_round(a: i64, b: i64) -> Option<i64> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?.unsigned_abs());
    if rest < b.unsigned_abs() - rest {
        return Some(quotient);
    }
    quotient.checked_add(if (a < 0) == (b < 0) { 1 } else { -1 })
}

/// `unscaled` / 10^`scale`, as JSON output: always with `scale` digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The value times 10^scale.
    pub unscaled: i64,
    /// Digits after the point, at most 18.
    pub scale: u32,
}

/// Room that the longest number needs: sign, 19 digits, point, and zeros before and after it.
pub const NUMBER_ROOM: usize = 24;

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// n's digits, at least `min` of them, at the end of a block of zeros; and where they begin.
fn digits(mut n: u64, min: usize) -> ([u8; NUMBER_ROOM], usize) {
    let (mut buf, mut at) = ([b'0'; NUMBER_ROOM], NUMBER_ROOM);
    while n > 0 {
        at -= 1;
        buf[at] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    (buf, at.min(NUMBER_ROOM - min))
}

/// Writes n in decimal and returns how many bytes that took.
#[inline]
pub fn write_int(to: &mut [u8; NUMBER_ROOM], n: i64) -> usize {
    if !(0..10_000).contains(&n) {
        return write_long(to, n);
    }
    // Most numbers are short, and 64-bit division is slow in a module.
    let n = n as u32;
    let (high, low) = ((n / 100) as usize * 2, (n % 100) as usize * 2);
    let four = [PAIRS[high], PAIRS[high + 1], PAIRS[low], PAIRS[low + 1]];
    let len = 1 + usize::from(n >= 10) + usize::from(n >= 100) + usize::from(n >= 1000);
    to[..4].copy_from_slice(&(u32::from_le_bytes(four) >> (8 * (4 - len))).to_le_bytes());
    len
}

fn write_long(to: &mut [u8; NUMBER_ROOM], n: i64) -> usize {
    let (buf, at) = digits(n.unsigned_abs(), 1);
    let sign = usize::from(n < 0);
    to[0] = b'-';
    let len = sign + NUMBER_ROOM - at;
    to[sign..len].copy_from_slice(&buf[at..]);
    len
}

/// Writes a decimal and returns how many bytes that took.
pub fn write_decimal(to: &mut [u8; NUMBER_ROOM], d: Decimal) -> usize {
    let scale = d.scale.min(18) as usize;
    let (buf, at) = digits(d.unscaled.unsigned_abs(), scale + 1);
    let (sign, point) = (usize::from(d.unscaled < 0), NUMBER_ROOM - scale);
    to[0] = b'-';
    let dot = sign + point - at;
    to[sign..dot].copy_from_slice(&buf[at..point]);
    if scale == 0 {
        return dot;
    }
    to[dot] = b'.';
    to[dot + 1..dot + 1 + scale].copy_from_slice(&buf[point..]);
    dot + 1 + scale
}
