//! lib
pub mod model;
