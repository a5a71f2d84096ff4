//! Every promise, played against the real thing.

mod broker_embedded;
mod broker_suite;
mod chaos_proxy;
mod eventually;
mod http_tool;
mod openai_model;
mod overheard;
mod rabbitmq;
mod real_broker;
mod real_outage_broker;
mod servers;
