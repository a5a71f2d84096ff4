//! Every promise, played against the real thing.

mod architecture;
mod authority;
mod binding;
mod broker_embedded;
mod broker_suite;
mod chaos_proxy;
mod cli;
mod documents;
mod durability;
mod eventually;
mod executed_twice;
mod http_tool;
mod listener;
mod load;
mod openai_model;
mod overheard;
mod pooled;
mod rabbitmq;
mod real_broker;
mod real_outage_broker;
mod real_outage_path;
mod serve;
mod servers;
mod system;
mod transcripts;
