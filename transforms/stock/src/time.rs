//! Times in whole milliseconds since 1970, UTC, and durations. No time zones but fixed offsets, no leap seconds.

/// A day.
pub const DAY: i64 = 86_400_000;
/// The first millisecond of the year 1.
pub const MIN: i64 = -62_135_596_800_000;
/// The last millisecond of the year 9999: the end of time.
pub const MAX: i64 = 253_402_300_799_999;

/// Year, month and day of a count of days since 1970 (proleptic Gregorian; the algorithm is Howard Hinnant's civil_from_days).
pub fn date(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// Days since 1970 of a date (days_from_civil).
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = year - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// Reads RFC 3339: date, T or t or a blank, time with any fraction (cut to milliseconds, downwards), Z or an offset.
pub fn parse(text: &[u8]) -> Option<i64> {
    let n = |from: usize, len: usize| -> Option<i64> {
        text.get(from..from + len)?.iter().try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + i64::from(c - b'0')))
    };
    let is = |at: usize, set: &[u8]| text.get(at).is_some_and(|c| set.contains(c));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (n(0, 4)?, n(5, 2)?, n(8, 2)?);
    let (hour, minute, second) = (n(11, 2)?, n(14, 2)?, n(17, 2)?);
    let day_number = days(year, month, day);
    if date(day_number) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut at = 19;
    let mut ms = 0;
    if is(at, b".") {
        let digits = text[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        ms = (0..3).fold(0, |ms, i| ms * 10 + if i < digits { i64::from(text[at + 1 + i] - b'0') } else { 0 });
        at += 1 + digits;
    }
    let offset = match text.get(at..)? {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (h, m) = (n(at + 1, 2)?, n(at + 4, 2)?);
            if h > 23 || m > 59 {
                return None;
            }
            (h * 60 + m) * 60_000 * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let t = day_number * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + ms - offset;
    (MIN..=MAX).contains(&t).then_some(t)
}

/// Appends `2026-01-02T03:04:05.678Z`. The time lies between [`MIN`] and [`MAX`].
pub fn write(to: &mut Vec<u8>, t: i64) {
    write_date(to, t);
    let ms = t.rem_euclid(DAY);
    for (mark, n, width) in [(b'T', ms / 3_600_000, 2), (b':', ms / 60_000 % 60, 2), (b':', ms / 1000 % 60, 2), (b'.', ms % 1000, 3)] {
        to.push(mark);
        padded(to, n, width);
    }
    to.push(b'Z');
}

/// Appends `2026-01-02`.
pub fn write_date(to: &mut Vec<u8>, t: i64) {
    let (year, month, day) = date(t.div_euclid(DAY));
    padded(to, year, 4);
    to.push(b'-');
    padded(to, month, 2);
    to.push(b'-');
    padded(to, day, 2);
}

fn padded(to: &mut Vec<u8>, n: i64, width: u32) {
    for i in (0..width).rev() {
        to.push(b'0' + (n / 10i64.pow(i) % 10) as u8);
    }
}

/// A unit to cut times to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// So many milliseconds, counted from 1970.
    Fixed(i64),
    /// Weeks begin on Monday.
    Week,
    /// Calendar months.
    Month,
    /// Calendar years.
    Year,
}

impl Unit {
    /// Reads `second`, `minute`, `hour`, `day`, `week`, `month`, `year`, or a duration.
    pub fn parse(text: &str) -> Option<Unit> {
        Some(match text {
            "second" => Unit::Fixed(1000),
            "minute" => Unit::Fixed(60_000),
            "hour" => Unit::Fixed(3_600_000),
            "day" => Unit::Fixed(DAY),
            "week" => Unit::Week,
            "month" => Unit::Month,
            "year" => Unit::Year,
            _ => Unit::Fixed(duration(text).filter(|d| *d > 0)?),
        })
    }

    /// The start of the unit that t lies in.
    pub fn floor(self, t: i64) -> i64 {
        match self {
            Unit::Fixed(n) => t - t.rem_euclid(n),
            // 1970 began on a Thursday.
            Unit::Week => t - (t + 3 * DAY).rem_euclid(7 * DAY),
            Unit::Month => {
                let (year, month, _) = date(t.div_euclid(DAY));
                days(year, month, 1) * DAY
            }
            Unit::Year => days(date(t.div_euclid(DAY)).0, 1, 1) * DAY,
        }
    }
}

/// Reads a duration such as `500ms`, `10s`, `1h30m` or `2d`, in milliseconds; `0` needs no unit.
pub fn duration(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let (mut rest, mut total) = (text, 0i64);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let n: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let ms = match &rest[..unit] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => DAY,
            _ => return None,
        };
        total = total.checked_add(n.checked_mul(ms)?)?;
        rest = &rest[unit..];
    }
    (!text.is_empty() && total <= MAX).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_rfc_3339() {
        for (text, ms, back) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z"),
            ("2026-01-02T03:04:05.6789Z", 1_767_323_045_678, "2026-01-02T03:04:05.678Z"),
            ("2024-02-29 23:59:59.5+01:30", 1_709_245_799_500 - 0, "2024-02-29T22:29:59.500Z"),
            ("1969-12-31T23:59:59.9z", -100, "1969-12-31T23:59:59.900Z"),
            ("0001-01-01T00:00:00Z", MIN, "0001-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(ms), "{text}");
            let mut to = Vec::new();
            write(&mut to, ms);
            assert_eq!(String::from_utf8(to).unwrap(), back);
        }
        for bad in [
            "",
            "2026-01-02",
            "2026-02-30T00:00:00Z",
            "2026-01-02T24:00:00Z",
            "2026-01-02T00:00:00",
            "2026-01-02T00:00:00.Z",
            "0001-01-01T00:00:00+01:00",
            "2026-01-02T00:00:00+1:00",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn dates_and_days_agree() {
        let mut want = (1899, 12, 31);
        for day in days(1900, 1, 1)..days(2101, 1, 1) {
            let got = date(day);
            assert_eq!(days(got.0, got.1, got.2), day);
            assert!(got > want, "{got:?} after {want:?}");
            want = got;
        }
    }

    #[test]
    fn cuts_to_units() {
        let t = parse(b"2026-07-16T13:47:12.345Z").unwrap();
        for (unit, want) in [
            ("second", "2026-07-16T13:47:12.000Z"),
            ("15m", "2026-07-16T13:45:00.000Z"),
            ("hour", "2026-07-16T13:00:00.000Z"),
            ("day", "2026-07-16T00:00:00.000Z"),
            ("week", "2026-07-13T00:00:00.000Z"),
            ("month", "2026-07-01T00:00:00.000Z"),
            ("year", "2026-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Unit::parse(unit).map(|u| u.floor(t)), parse(want.as_bytes()), "{unit}");
        }
        assert_eq!(Unit::Fixed(1000).floor(-1), -1000);
        assert_eq!(Unit::parse("decade"), None);
    }

    #[test]
    fn reads_durations() {
        for (text, want) in [("500ms", Some(500)), ("10s", Some(10_000)), ("1h30m", Some(5_400_000)), ("2d", Some(2 * DAY)), ("0", Some(0))] {
            assert_eq!(duration(text), want, "{text}");
        }
        for bad in ["", "s", "10", "10 s", "-1s", "1.5s", "1w", "99999999999999999999s", "9999999d"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
