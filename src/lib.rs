//! lib
pub mod broker;
pub mod clock;
pub mod model;
pub mod retry;
