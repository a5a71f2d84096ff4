//! The command line: one file for each command, and this list of them.
//!
//! A command reads its arguments, asks or tells the store, and answers once, as text or as JSON. Deciding goes
//! through the same door as everywhere: a decision row and its event; nothing here judges a decision, and
//! nothing here runs a call. This is the edge of the process, so it is the one room with anyhow in it, and
//! the only one that looks at the process's arguments and environment.

mod arguments;
mod card;
mod catalogue;
mod completions;
mod copyable;
mod decide;
pub mod demo;
mod directory;
mod directory_change;
mod events;
mod exit;
mod forms;
mod input;
mod layout;
mod migrate;
mod moment;
mod paint;
mod process;
mod runs;
mod screen;
mod serve;
mod session;
mod signals;
mod simulate;
mod timeline;
mod who_can;

use std::process::ExitCode;

use clap::Parser as _;

pub use arguments::{Arguments, Command, Globals};
pub use copyable::Program;
pub use exit::{Exit, Fault};
pub use paint::{Paint, Style};
pub use screen::{Colour, Format, Screen};
pub use session::{Session, store_settings};

/// The whole program: reads the command line, does what it says, and tells how it ended.
#[must_use]
pub fn run() -> ExitCode {
    // Before anything can ask for TLS; a second installation, which only a test makes, keeps the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are such "errors" too. If they cannot be printed there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage.code()
            } else {
                Exit::Done.code()
            };
        }
    };
    let screen = arguments.globals.screen();
    match dispatch(&arguments) {
        Ok(exit) => exit.code(),
        Err(error) if exit::is_broken_pipe(&error) => Exit::Done.code(),
        Err(error) => {
            let fault = exit::explain(&error);
            if screen.is_json() {
                eprintln!(
                    "{}",
                    screen::to_json(&exit::as_json(&fault), screen::Shape::OneLine)
                );
            } else {
                eprint!("{}", exit::as_text(&fault, arguments.globals.error_paint()));
            }
            fault.exit.code()
        }
    }
}

fn dispatch(arguments: &Arguments) -> anyhow::Result<Exit> {
    let globals = &arguments.globals;
    match &arguments.command {
        Command::Completions(arguments) => completions::run(arguments),
        command => asynchronously(async {
            match command {
                Command::Demo(command) => demo::run(globals, command).await,
                Command::Serve(command) => serve::run(globals, command).await,
                Command::Migrate => migrate::run(globals).await,
                Command::Catalogue(command) => catalogue::run(globals, command).await,
                Command::Directory(command) => directory::run(globals, command).await,
                Command::Runs(command) => runs::run(globals, command).await,
                Command::Decide(command) => decide::run(globals, command).await,
                Command::Events(command) => events::run(globals, command).await,
                Command::Simulate(command) => simulate::run(globals, command).await,
                Command::WhoCan(command) => who_can::run(globals, command).await,
                Command::Completions(arguments) => completions::run(arguments),
            }
        }),
    }
}

fn asynchronously(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(command)
}
