//! Every promise, played against the real thing.

mod executed_twice;
mod http_tool;
mod openai_model;
mod servers;
mod system;
