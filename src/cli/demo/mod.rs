//! The demo: who there is and what waits ([`seed`]), what to try ([`guide`]), what `demo --script` plays ([`script`])
//! and how, and the command that starts it all.

mod command;
pub mod guide;
mod play;
pub mod script;
pub mod seed;

pub use command::DemoArguments;
pub(super) use command::run;
