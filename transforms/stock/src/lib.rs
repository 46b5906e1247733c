#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod config;
pub mod decimal;
pub mod expr;
pub mod json;
pub mod scan;
pub mod time;
