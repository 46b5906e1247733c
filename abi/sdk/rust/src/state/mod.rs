//! State: what a keyed stage remembers from one batch to the next, exactly once.
//!
//! A table of the manifest becomes a constant: a [`Value`] or [`Counter`] for each key, a [`Map`] or [`List`] under each key.
//! The key is that of the record at hand ([`Record::state_key`](crate::Record::state_key)): a lane has the state of its own
//! keys only. Reads see the batch's own writes.
//!
//! Nothing goes to the host one by one. What a frame's records need is read by one call before the first of them is handled,
//! and what a lane changed is written by one call at its end: see [`Transform::prefetch`](crate::Transform::prefetch).

mod cache;
mod codec;
mod heap;
mod lane;
mod rows;
mod tables;

pub use codec::{Codec, Sub};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use heap::view;
pub(crate) use lane::{Lane, Records};
pub use rows::{Rows, Scan};
pub use tables::{Counter, Entry, List, Map, Ticket, Value, Want};
