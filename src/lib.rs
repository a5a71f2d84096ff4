//! lib
pub mod catalogue;
pub mod config;
pub mod declaration;
pub mod identity;
pub mod model;
