//! What is declared: providers, models, configurations, toolsets and tools.
//!
//! A catalogue is one TOML text. It is parsed and checked as a whole, stored as an immutable numbered
//! version, and read as [`Catalogue`], in which every name resolves. The room is pure and knows nothing of
//! where a version is kept, of who asks, and of what may be done: that is `policy`.

mod address;
mod check;
mod diff;
mod models;
mod parse;
mod tools;
mod trust;
mod types;

#[cfg(test)]
mod tests;

pub use crate::declaration::{Problem, Problems, Severity, nearest};
pub use diff::{Change, diff};
pub use tools::BUILTIN_FUNCTIONS;
pub use trust::{DataClass, TrustZone};
pub use types::{
    Catalogue, Configuration, Context, CredentialSource, Endpoint, Enforcement, HttpTool, Model, Provider,
    ProviderKind, Tool, ToolKind, Toolset,
};
