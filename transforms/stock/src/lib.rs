#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod agg;
pub mod config;
pub mod decimal;
pub mod expr;
pub mod fields;
mod flat;
pub mod group;
pub mod hll;
pub mod json;
pub mod order;
pub mod scan;
pub mod spans;
pub mod time;
