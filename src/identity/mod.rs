//! Who an actor is right now. The resolver reads the directory live at each decision; nothing is cached
//! across decisions and nothing is taken from a message. The directory can be declared in a file, which is
//! only read here and never asked at a decision.

mod directory_file;
mod resolver;

pub use directory_file::{DirectoryFile, GroupEntry, ServiceAccountEntry, UserEntry};
pub use resolver::{ReadDirectory, principal_of, resolve};
