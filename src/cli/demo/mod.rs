//! The demo's ingredients: who there is and what waits ([`seed`]), what to try ([`guide`]), and what
//! `demo --script` plays ([`script`]). Everything is data; nothing here opens a database or starts a worker.

pub mod guide;
pub mod script;
pub mod seed;
