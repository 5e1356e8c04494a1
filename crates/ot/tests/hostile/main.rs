//! Peers that cheat, leave, or were set up otherwise; calls for nothing.
#![allow(missing_docs, clippy::unwrap_used)]

mod altered;
mod background;
mod interrupted;
mod nothing;
mod session;
mod settings;
