//! lib
pub mod catalogue;
pub mod declaration;
pub mod model;
