//! Tests of the engines from within: correlated blocks do not leave the crate.
#![allow(clippy::unwrap_used)]

mod measures;
mod statistics;
