//! Every promise, played against the real thing.

mod http_tool;
mod openai_model;
mod servers;
