//! Reading what people declare: a TOML text in, typed values out, and every fault named with its key, its
//! place and the nearest name that would have been right.
//!
//! The catalogue, the settings and the directory are all declared so, and a slip in any of them should read
//! the same. The room knows TOML and nothing of what is declared: no tool, no setting, no user. It is pure,
//! and never stops at the first fault if it can find the next. It does not show the text it reads, save the
//! one line of a syntax error, which who declares secrets drops (see [`Problem::excerpt`]).

mod document;
mod duration;
mod item;
mod json;
mod nearest;
mod position;
mod problem;
mod section;

pub use document::Document;
pub use duration::{InvalidDuration, format_duration, parse_duration};
pub use item::Item;
pub use nearest::nearest;
pub use problem::{Problem, Problems, Severity};
pub use section::{Flag, Section};
