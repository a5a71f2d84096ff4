//! Who an actor is right now. The resolver reads the directory live at each decision; nothing is cached
//! across decisions and nothing is taken from a message.

mod resolver;

pub use resolver::{ReadDirectory, principal_of, resolve};
