//! Why a record was refused.

use std::borrow::Cow;
use std::fmt;

/// The code of refusals that the SDK itself makes: a field was not what the transform asked for. Codes of a transform's own
/// begin at 1.
pub const BAD_FIELD: u16 = 0;

/// What a transform returns for a record: `Ok` when it is done with it, else why it refuses it.
pub type Result<T = (), E = Reject> = core::result::Result<T, E>;

/// A refused record: set aside as a dead letter, or poison. Made by [`dead_letter`] and [`fail`].
#[derive(Debug)]
pub struct Reject(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: u16,
    poison: bool,
    reason: Cow<'static, str>,
}

/// Sets the record aside alone: it goes to the job's dead letters with this code and reason, and nothing starts again.
#[cold]
pub fn dead_letter(code: u16, reason: impl Into<Cow<'static, str>>) -> Reject {
    Reject(Box::new(Inner { code, poison: false, reason: reason.into() }))
}

/// Declares the record poison: the host runs the whole lane again without it. For a transform whose memory of the lane the
/// record has already spoilt; otherwise [`dead_letter`] is cheaper.
#[cold]
pub fn fail(code: u16, reason: impl Into<Cow<'static, str>>) -> Reject {
    Reject(Box::new(Inner { code, poison: true, reason: reason.into() }))
}

impl Reject {
    /// The transform's own number for this kind of refusal.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// The reason in words.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// True for [`fail`], false for [`dead_letter`].
    pub fn is_poison(&self) -> bool {
        self.0.poison
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.0.reason, self.0.code)
    }
}

impl std::error::Error for Reject {}
