//! Exact decimal numbers of up to 38 digits. No result is ever rounded unless its name says so; what does not fit is `None`.

use std::cmp::Ordering;

/// Most digits after the point.
pub const MAX_SCALE: u32 = 38;

/// `m` / 10^`scale`. Two numbers of equal value may differ in scale; [`Dec::order`] and `==` compare values.
#[derive(Clone, Copy, Debug)]
pub struct Dec {
    /// The value times 10^scale.
    pub m: i128,
    /// Digits after the point, at most [`MAX_SCALE`].
    pub scale: u32,
}

const POWERS: [i128; 39] = {
    let (mut p, mut i) = ([1; 39], 1);
    while i < 39 {
        p[i] = p[i - 1] * 10;
        i += 1;
    }
    p
};

/// 10^n, if it fits.
#[inline]
fn power(n: u32) -> Option<i128> {
    POWERS.get(n as usize).copied()
}

/// a * b, without the long multiplication where both are short.
#[inline]
fn mul(a: i128, b: i128) -> Option<i128> {
    if let (Ok(x), Ok(y)) = (i32::try_from(a), i32::try_from(b)) {
        return Some(i128::from(i64::from(x) * i64::from(y)));
    }
    if let (Ok(x), Ok(y)) = (i64::try_from(a), i64::try_from(b))
        && let Some(p) = x.checked_mul(y)
    {
        return Some(i128::from(p));
    }
    a.checked_mul(b)
}

impl Dec {
    /// Zero.
    pub const ZERO: Dec = Dec { m: 0, scale: 0 };

    /// An integer.
    #[inline]
    pub const fn int(n: i64) -> Dec {
        Dec { m: n as i128, scale: 0 }
    }

    /// Reads a JSON number, exponent included. `None` when it is none, or needs more than 38 digits or a scale above 38.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Dec> {
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        if digits.is_empty() || digits.len() > 18 {
            return parse_long(negative, digits);
        }
        let (mut n, mut scale, mut point) = (0i64, 0u32, false);
        for (i, &c) in digits.iter().enumerate() {
            let d = c.wrapping_sub(b'0');
            if d > 9 {
                if c != b'.' || point || i == 0 || i + 1 == digits.len() {
                    return parse_long(negative, digits);
                }
                point = true;
                continue;
            }
            n = n * 10 + i64::from(d);
            scale += u32::from(point);
        }
        Some(Dec { m: i128::from(if negative { -n } else { n }), scale })
    }

    /// The integer it is; `None` when it has a fraction or does not fit 64 bits.
    #[inline]
    pub fn to_i64(self) -> Option<i64> {
        if self.scale == 0 {
            return i64::try_from(self.m).ok();
        }
        let p = power(self.scale)?;
        (self.m % p == 0).then(|| i64::try_from(self.m / p).ok())?
    }

    /// The same value with `scale` digits after the point; `None` when that needs more digits, or would cut some off.
    #[inline]
    fn raised(self, scale: u32) -> Option<i128> {
        if scale == self.scale { Some(self.m) } else { mul(self.m, power(scale - self.scale)?) }
    }

    /// Both with the same scale.
    #[inline]
    fn aligned(self, b: Dec) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(b.scale);
        Some((self.raised(scale)?, b.raised(scale)?, scale))
    }

    /// The sum, with the larger scale of the two.
    #[inline]
    pub fn add(self, b: Dec) -> Option<Dec> {
        let (x, y, scale) = self.aligned(b)?;
        Some(Dec { m: x.checked_add(y)?, scale })
    }

    /// The difference, with the larger scale of the two.
    #[inline]
    pub fn sub(self, b: Dec) -> Option<Dec> {
        self.add(b.neg()?)
    }

    /// The product; its scale is the sum of the two.
    #[inline]
    pub fn mul(self, b: Dec) -> Option<Dec> {
        let (mut m, mut scale) = (mul(self.m, b.m)?, self.scale + b.scale);
        while scale > MAX_SCALE {
            if m % 10 != 0 {
                return None;
            }
            (m, scale) = (m / 10, scale - 1);
        }
        Some(Dec { m, scale })
    }

    /// With the other sign.
    #[inline]
    pub fn neg(self) -> Option<Dec> {
        Some(Dec { m: self.m.checked_neg()?, scale: self.scale })
    }

    /// The value without its sign.
    #[inline]
    pub fn abs(self) -> Option<Dec> {
        Some(Dec { m: self.m.checked_abs()?, scale: self.scale })
    }

    /// True when the value is not larger than `most` / 10^18, without its sign, and has at most 18 digits after the point.
    #[inline]
    pub fn is_within(self, most: i128) -> bool {
        self.scale <= 18 && self.raised(18).is_some_and(|m| m.checked_abs().is_some_and(|m| m <= most))
    }

    /// The whole part of a / b: what is left over is cut off. `None` also when b is 0.
    pub fn quotient(self, b: Dec) -> Option<Dec> {
        let (x, y, _) = self.aligned(b)?;
        Some(Dec { m: x.checked_div(y)?, scale: 0 })
    }

    /// What is left over by [`Dec::quotient`]; it has the sign of a. `None` also when b is 0.
    #[inline]
    pub fn remainder(self, b: Dec) -> Option<Dec> {
        if self.scale | b.scale == 0
            && let (Ok(x), Ok(y)) = (i64::try_from(self.m), i64::try_from(b.m))
        {
            return Some(Dec::int(x.checked_rem(y)?));
        }
        let (x, y, scale) = self.aligned(b)?;
        Some(Dec { m: x.checked_rem(y)?, scale })
    }

    /// a / b with `digits` after the point, a half rounded away from zero. `None` also when b is 0.
    pub fn divide(self, b: Dec, digits: u32) -> Option<Dec> {
        let up = digits + b.scale;
        let (x, y) = if up >= self.scale { (mul(self.m, power(up - self.scale)?)?, b.m) } else { (self.m, mul(b.m, power(self.scale - up)?)?) };
        Some(Dec { m: div_half_away(x, y)?, scale: digits })
    }

    /// With exactly `digits` after the point, a half rounded away from zero.
    pub fn round(self, digits: u32) -> Option<Dec> {
        if digits >= self.scale {
            return Some(Dec { m: self.raised(digits)?, scale: digits });
        }
        Some(Dec { m: div_half_away(self.m, power(self.scale - digits)?)?, scale: digits })
    }

    /// The largest integer that is not larger.
    pub fn floor(self) -> Option<Dec> {
        Some(Dec { m: self.m.checked_div_euclid(power(self.scale)?)?, scale: 0 })
    }

    /// The smallest integer that is not smaller.
    pub fn ceil(self) -> Option<Dec> {
        self.neg()?.floor()?.neg()
    }

    /// Which is larger.
    #[inline]
    pub fn order(self, b: Dec) -> Ordering {
        if self.scale == b.scale {
            return self.m.cmp(&b.m);
        }
        let scale = self.scale.max(b.scale);
        match (self.raised(scale), b.raised(scale)) {
            (Some(x), Some(y)) => x.cmp(&y),
            // Only the one with the smaller scale grows; what does not fit is the larger in magnitude.
            (None, _) => self.m.cmp(&0),
            (_, None) => 0.cmp(&b.m),
        }
    }

    /// Without zeros at the end of its fraction.
    pub fn trimmed(mut self) -> Dec {
        while self.scale > 0 && self.m % 10 == 0 {
            (self.m, self.scale) = (self.m / 10, self.scale - 1);
        }
        self
    }

    /// As 17 bytes for a state's value: the mantissa, little-endian, and the scale.
    pub fn to_bytes(self) -> [u8; 17] {
        let mut b = [0; 17];
        b[..16].copy_from_slice(&self.m.to_le_bytes());
        b[16] = self.scale as u8;
        b
    }

    /// Reads what [`Dec::to_bytes`] wrote.
    pub fn from_bytes(b: [u8; 17]) -> Option<Dec> {
        let (m, scale) = b.split_first_chunk::<16>()?;
        let scale = u32::from(scale[0]);
        (scale <= MAX_SCALE).then_some(Dec { m: i128::from_le_bytes(*m), scale })
    }

    /// Appends its text: `scale` digits after the point, no exponent.
    #[inline]
    pub fn write(self, to: &mut Vec<u8>) {
        let mut buf = [b'0'; 48];
        let mut at = digits(self.m.unsigned_abs(), &mut buf);
        let scale = self.scale as usize;
        at = at.min(buf.len() - scale - 1);
        if self.m < 0 {
            to.push(b'-');
        }
        to.extend_from_slice(&buf[at..buf.len() - scale]);
        if scale > 0 {
            to.push(b'.');
            to.extend_from_slice(&buf[buf.len() - scale..]);
        }
    }
}

/// Writes n's digits at the end of a block of zeros and returns where they begin.
#[inline]
fn digits(n: u128, buf: &mut [u8; 48]) -> usize {
    let mut at = buf.len();
    let mut short = match u64::try_from(n) {
        Ok(n) => n,
        Err(_) => {
            const CUT: u128 = 1_000_000_000_000_000_000;
            let mut high = n;
            while high > u128::from(u64::MAX) {
                let (mut low, end) = ((high % CUT) as u64, at - 18);
                high /= CUT;
                while low > 0 {
                    at -= 1;
                    buf[at] = b'0' + (low % 10) as u8;
                    low /= 10;
                }
                at = end;
            }
            high as u64
        }
    };
    while short > 0 {
        at -= 1;
        buf[at] = b'0' + (short % 10) as u8;
        short /= 10;
    }
    at
}

fn div_half_away(a: i128, b: i128) -> Option<i128> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?.unsigned_abs());
    if rest < b.unsigned_abs() - rest {
        return Some(quotient);
    }
    quotient.checked_add(if (a < 0) == (b < 0) { 1 } else { -1 })
}

impl PartialEq for Dec {
    fn eq(&self, b: &Dec) -> bool {
        self.order(*b) == Ordering::Equal
    }
}

impl Eq for Dec {}

impl PartialOrd for Dec {
    fn partial_cmp(&self, b: &Dec) -> Option<Ordering> {
        Some(self.order(*b))
    }
}

impl Ord for Dec {
    fn cmp(&self, b: &Dec) -> Ordering {
        self.order(*b)
    }
}

/// The general case: any length, exponents, zeros that are cut off to fit.
#[cold]
fn parse_long(negative: bool, text: &[u8]) -> Option<Dec> {
    let count = |t: &[u8]| t.iter().take_while(|c| c.is_ascii_digit()).count();
    let (int, rest) = text.split_at(count(text));
    let (frac, rest) = match rest {
        [b'.', r @ ..] if count(r) > 0 => r.split_at(count(r)),
        [b'.', ..] => return None,
        _ => (&rest[..0], rest),
    };
    if int.is_empty() {
        return None;
    }
    let exponent = parse_exponent(rest)?;
    let (mut m, mut scale, mut zeros) = (0i128, frac.len() as i64 - exponent, 0u32);
    for c in int.iter().chain(frac) {
        // Zeros wait until a digit follows, so that any number of them may stand at the end.
        if *c == b'0' {
            zeros += u32::from(m != 0);
            continue;
        }
        m = m.checked_mul(power(zeros + 1)?)?.checked_add(i128::from(c - b'0'))?;
        zeros = 0;
    }
    if m == 0 {
        return Some(Dec { m: 0, scale: scale.clamp(0, i64::from(MAX_SCALE)) as u32 });
    }
    let needed = scale - i64::from(zeros);
    if needed > i64::from(MAX_SCALE) {
        return None;
    }
    scale = scale.clamp(0, i64::from(MAX_SCALE));
    // The zeros at the end stay where there is room for them.
    let whole = |scale: i64| m.checked_mul(power(u32::try_from(scale - needed).ok()?)?);
    (m, scale) = match whole(scale) {
        Some(m) => (m, scale),
        None => (whole(needed.max(0))?, needed.max(0)),
    };
    Some(Dec { m: if negative { -m } else { m }, scale: scale as u32 })
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [b'e' | b'E', b'-', d @ ..] => (true, d),
        [b'e' | b'E', b'+', d @ ..] | [b'e' | b'E', d @ ..] => (false, d),
        _ => return None,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n = digits.iter().fold(0i64, |n, c| (n * 10 + i64::from(c - b'0')).min(1 << 40));
    Some(if negative { -n } else { n })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Dec {
        Dec::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is no number"))
    }

    fn text(d: Option<Dec>) -> String {
        d.map_or("none".into(), |d| {
            let mut to = Vec::new();
            d.write(&mut to);
            String::from_utf8(to).unwrap()
        })
    }

    #[test]
    fn reads_and_writes() {
        let nines = "9".repeat(38);
        for (from, to) in [
            ("0", "0"),
            ("-0", "0"),
            ("12.50", "12.50"),
            ("-0.001", "-0.001"),
            ("1e3", "1000"),
            ("1.25E+1", "12.5"),
            ("125e-2", "1.25"),
            ("0e99", "0"),
            ("1000000000000000000000", "1000000000000000000000"),
            ("0.000000000000000000000000000000000001", "0.000000000000000000000000000000000001"),
            (&nines, &nines),
            ("18446744073709551616.000000000000000001", "18446744073709551616.000000000000000001"),
            ("100000000000000000000000000000000000000", "100000000000000000000000000000000000000"),
            ("1e-38", "0.00000000000000000000000000000000000001"),
            ("10e-39", "0.00000000000000000000000000000000000001"),
            ("100000000000000000000000000000000000000000e-40", "10"),
        ] {
            assert_eq!(text(Dec::parse(from.as_bytes())), to, "{from}");
        }
        for bad in ["", "-", ".5", "5.", "1e", "1e+", "abc", "1x", "1e39", "1e-39", "1e400", "999999999999999999999999999999999999999999"] {
            assert_eq!(text(Dec::parse(bad.as_bytes())), "none", "{bad}");
        }
    }

    #[test]
    fn counts_exactly() {
        assert_eq!(text(d("0.1").add(d("0.2"))), "0.3");
        assert_eq!(text(d("1").sub(d("0.05"))), "0.95");
        assert_eq!(text(d("0.908").mul(d("100"))), "90.800");
        assert_eq!(text(d("-7").quotient(d("2"))), "-3");
        assert_eq!(text(d("-7").remainder(d("2"))), "-1");
        assert_eq!(text(d("7.5").remainder(d("2"))), "1.5");
        assert_eq!(text(d("1").divide(d("3"), 4)), "0.3333");
        assert_eq!(text(d("-1").divide(d("8"), 2)), "-0.13");
        assert_eq!(text(d("2.000").divide(d("0.5"), 0)), "4");
        assert_eq!(text(d("2.345").round(2)), "2.35");
        assert_eq!(text(d("-2.345").round(2)), "-2.35");
        assert_eq!(text(d("2").round(2)), "2.00");
        assert_eq!(text(d("-2.5").floor()), "-3");
        assert_eq!(text(d("-2.5").ceil()), "-2");
        assert_eq!(text(d("1").divide(d("0"), 2)), "none");
        assert_eq!(text(d("1").quotient(d("0"))), "none");
        assert_eq!(text(d("1").remainder(d("0.0"))), "none");
        assert_eq!(text(d("99999999999999999999999999999999999999").mul(d("10"))), "none");
        assert_eq!(text(Some(d("1.500").trimmed())), "1.5");
        assert_eq!(text(Dec::from_bytes(d("-12.50").to_bytes())), "-12.50");
        assert_eq!(text(Dec::from_bytes([39; 17])), "none");
    }

    #[test]
    fn compares_values() {
        let rising = ["-1e30", "-2.5", "-2", "0", "0.001", "1.5", "1.50001", "2", "99999999999999999999999999999999999999"];
        for (i, a) in rising.iter().enumerate() {
            for (k, b) in rising.iter().enumerate() {
                assert_eq!(d(a).order(d(b)), i.cmp(&k), "{a} and {b}");
            }
        }
        assert_eq!(d("1.50"), d("1.5"));
        assert_eq!(d("5.00").to_i64(), Some(5));
        assert_eq!(d("5.01").to_i64(), None);
    }
}
