//! The configuration, and what it says of time.

use stock::config::{Config, refuse};
use stock::expr::{Expr, Program, Type};
use stock::fields::Fields;
use stock::scan;
use stock::time;
use wasmill::{Result, Value};

/// Which records come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Inner,
    Left,
    Right,
    Full,
    Semi,
    Anti,
}

/// Which records of the sides can match. Times are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// All.
    Ever,
    /// A right one at most so much before or after a left one; kept in buckets of this size.
    Within { before: i64, after: i64, bucket: i64 },
    /// Those of the same tumbling window.
    Window(i64),
}

/// The value of what comes out.
pub enum Shape {
    /// `{"left":..,"right":..}`
    Pair,
    /// The left record's value.
    Left,
    /// A new object.
    Fields(Fields),
}

/// Number of a side: that of its input.
pub const LEFT: usize = 0;
/// As above.
pub const RIGHT: usize = 1;

pub struct Settings {
    pub kind: Kind,
    pub timing: Timing,
    pub condition: Option<Expr>,
    pub shape: Shape,
    /// By side, the members that are read: the others are not kept. `None`: all.
    pub reads: [Option<Vec<String>>; 2],
}

/// The end of time: what is kept for ever is let go when an input says that it is complete.
const END: i64 = time::MAX * 1000;

/// The smallest bucket.
const LEAST_BUCKET: i64 = 1_000_000;

impl Settings {
    pub fn read(config: Value<'_>, program: &mut Program) -> Result<Settings> {
        let mut c = Config::new(config)?;
        let kind = match c.choice("type", &["inner", "left", "right", "full", "semi", "anti"])? {
            "left" => Kind::Left,
            "right" => Kind::Right,
            "full" => Kind::Full,
            "semi" => Kind::Semi,
            "anti" => Kind::Anti,
            _ => Kind::Inner,
        };
        let within = c.object("within")?;
        let window = c.duration("window")?;
        let timing = match (within, window) {
            (Some(_), Some(_)) => return Err(refuse("window and within do not go together")),
            (None, None) => Timing::Ever,
            (None, Some(0)) => return Err(refuse("window is no time")),
            (None, Some(size)) => Timing::Window(size * 1000),
            (Some(mut w), None) => {
                let before = w.duration("before")?.unwrap_or(0) * 1000;
                let after = w.duration("after")?.unwrap_or(0) * 1000;
                w.finish()?;
                Timing::Within { before, after, bucket: (before + after).max(LEAST_BUCKET) }
            }
        };
        let condition = c.string("where")?.map(|text| program.compile("where", &text, Type::Bool)).transpose()?;
        let shape = match Fields::read(&mut c, "fields", program)? {
            Some(fields) => Shape::Fields(fields),
            None if matches!(kind, Kind::Semi | Kind::Anti) => Shape::Left,
            None => Shape::Pair,
        };
        c.finish()?;
        let mut reads = [members(program, LEFT), members(program, RIGHT)];
        match shape {
            Shape::Pair => reads = [None, None],
            Shape::Left => reads[LEFT] = None,
            Shape::Fields(_) => {}
        }
        Ok(Settings { kind, timing, condition, shape, reads })
    }

    /// Whether records of a side come out alone when nothing has matched them.
    pub fn alone(&self, side: usize) -> bool {
        match self.kind {
            Kind::Left | Kind::Anti => side == LEFT,
            Kind::Right => side == RIGHT,
            Kind::Full => true,
            Kind::Inner | Kind::Semi => false,
        }
    }

    /// Whether it counts if something has matched a record of a side.
    pub fn marks(&self, side: usize) -> bool {
        self.alone(side) || self.kind == Kind::Semi && side == LEFT
    }

    /// Whether pairs come out.
    pub fn pairs(&self) -> bool {
        !matches!(self.kind, Kind::Semi | Kind::Anti)
    }
}

/// The members of a side's value that expressions read; `None` when they read it as a whole.
fn members(program: &Program, side: usize) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for pointer in program.pointers(side) {
        let first = scan::tokens(pointer).ok()?.into_iter().next()?;
        if !names.contains(&first) {
            names.push(first);
        }
    }
    Some(names)
}

impl Timing {
    /// The bucket of a time.
    pub fn bucket(self, t: i64) -> i64 {
        match self {
            Timing::Ever => 0,
            Timing::Within { bucket, .. } => t.div_euclid(bucket),
            Timing::Window(size) => t.div_euclid(size),
        }
    }

    /// The times of the other side that may match a record of `side` at t, first and last.
    pub fn reach(self, side: usize, t: i64) -> (i64, i64) {
        match self {
            Timing::Ever => (i64::MIN, i64::MAX),
            Timing::Within { before, after, .. } if side == LEFT => (t - before, t + after),
            Timing::Within { before, after, .. } => (t - after, t + before),
            Timing::Window(size) => (t - t.rem_euclid(size), t - t.rem_euclid(size) + size - 1),
        }
    }

    /// The buckets of the other side that may match a record of `side` at t, first and last.
    pub fn buckets(self, side: usize, t: i64) -> (i64, i64) {
        if self == Timing::Ever {
            return (0, 0);
        }
        let (first, last) = self.reach(side, t);
        (self.bucket(first), self.bucket(last))
    }

    /// When nothing can match a side's bucket any more.
    pub fn over(self, side: usize, bucket: i64) -> i64 {
        let end = |size: i64, more: i64| bucket.saturating_add(1).saturating_mul(size).saturating_add(more).min(END);
        match self {
            Timing::Ever => END,
            Timing::Within { after, bucket: size, .. } if side == LEFT => end(size, after),
            Timing::Within { before, bucket: size, .. } => end(size, before),
            Timing::Window(size) => end(size, 0),
        }
    }

    /// Whether a record at t comes too late: what it may match may be gone. A watermark of 0 is none yet.
    pub fn late(self, t: i64, late_watermark: i64) -> bool {
        match self {
            Timing::Ever => false,
            _ if late_watermark == 0 => false,
            Timing::Within { .. } => t < late_watermark,
            Timing::Window(_) => self.over(LEFT, self.bucket(t)) <= late_watermark,
        }
    }
}
