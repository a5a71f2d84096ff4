//! Who people are and what they may do, as the directory declares it.

mod directory_file;

pub use directory_file::{DirectoryFile, GroupEntry, ServiceAccountEntry, UserEntry};
