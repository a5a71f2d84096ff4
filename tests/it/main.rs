//! Every promise, played against the real thing.

mod authority;
mod binding;
mod cli;
mod durability;
mod executed_twice;
mod http_tool;
mod listener;
mod openai_model;
mod servers;
mod system;
mod transcripts;
