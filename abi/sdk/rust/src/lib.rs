#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod guest;
mod host;
mod json;
mod manifest;
mod mem;
mod num;
mod object;
mod out;
mod raw;
mod record;
mod reject;
mod row;
mod scan;
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod value;

pub use guest::Transform;
pub use host::{Level, log};
pub use json::ToJson;
pub use manifest::{Field, Port};
pub use num::{Decimal, div_round, parse_int, parse_scaled};
pub use object::{List, Object};
pub use out::{Draft, Out};
pub use record::{Batch, Input, Record};
pub use reject::{BAD_FIELD, Reject, Result, dead_letter, fail};
pub use row::{Cell, Columns, Row};
pub use value::{Kind, Value};

/// What the macro [`transform!`] needs; not for use by hand.
#[doc(hidden)]
pub mod module {
    pub use crate::guest::Global;
    pub use crate::manifest::section;
}
