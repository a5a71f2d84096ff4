//! What can be typed: the commands and the options that they share. How a word becomes a value is decided
//! here; what a value means is decided by the command.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::completions::CompletionsArguments;
use super::paint::Paint;
use super::screen::{Colour, Format, Screen};
use super::{catalogue, decide, demo, directory, events, runs, serve, simulate, who_can};
use crate::declaration::parse_duration;
use crate::model::{Actor, TurnDigest};

/// A release gate for AI agents' tool calls: an approver may only release a write they could run themselves.
#[derive(Debug, Parser)]
#[command(name = "countersign", version, about, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 refused, 4 not found, 5 still pending, 6 too late,\n130 ended at once by a second signal."
)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Settings file; without it `countersign.toml` of the working folder, if there is one.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "COUNTERSIGN_CONFIG",
        hide_env_values = true
    )]
    pub config: Option<PathBuf>,
    /// Answer in JSON, for machines.
    #[arg(long, global = true)]
    pub json: bool,
    /// No colour; NO_COLOR in the environment does the same.
    #[arg(long, global = true)]
    pub no_color: bool,
    /// How long to wait for a database or a broker that does not answer yet, such as 10s; 60s unless set.
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_duration)]
    pub connect_timeout: Option<Duration>,
}

impl Globals {
    /// How the command answers.
    #[must_use]
    pub fn screen(&self) -> Screen {
        let format = if self.json { Format::Json } else { Format::Text };
        Screen::new(format, self.colour())
    }

    /// How errors are painted.
    #[must_use]
    pub fn error_paint(&self) -> Paint {
        let painted = self.colour() == Colour::IfTerminal && io::stderr().is_terminal();
        if painted { Paint::ANSI } else { Paint::PLAIN }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "NO_COLOR is a convention of all programs, no setting of ours"
    )]
    fn colour(&self) -> Colour {
        let unwanted = self.no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if unwanted {
            Colour::Never
        } else {
            Colour::IfTerminal
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See it work: a whole system on a temporary folder, without keys and without a network.
    Demo(demo::DemoArguments),
    /// Work: take decisions from the queue, run what was released, publish what happened.
    Serve(serve::ServeArguments),
    /// Bring the database's tables up to this build.
    Migrate,
    /// Check, apply and compare what is declared: models, configurations, tools.
    #[command(subcommand)]
    Catalogue(catalogue::CatalogueCommand),
    /// Say who there is: people, groups, service accounts.
    #[command(subcommand)]
    Directory(directory::DirectoryCommand),
    /// Start, list, look at and cancel runs.
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// Approve or deny the turn that a run waits with.
    #[command(subcommand)]
    Decide(decide::DecideCommand),
    /// Foresee what would become of a call: allow, allow with approval, or block, rule by rule.
    Simulate(simulate::SimulateArguments),
    /// See who could release the turn that a run waits with.
    WhoCan(who_can::WhoCanArguments),
    /// See what happens.
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Print a completion script for a shell.
    Completions(CompletionsArguments),
}

/// Reads an actor.
///
/// # Errors
/// The text names no actor.
pub(super) fn actor(text: &str) -> Result<Actor, String> {
    text.parse::<Actor>().map_err(|_| {
        "write user:<id> or service:<id>, the id 1 to 128 letters, digits or . _ - @ +".to_owned()
    })
}

/// Reads a turn's digest.
///
/// # Errors
/// The text has not the form of a digest.
pub(super) fn digest(text: &str) -> Result<TurnDigest, String> {
    TurnDigest::parse(text).ok_or_else(|| {
        "write sha256: and 64 lower-case hex digits, as `countersign runs show` prints it".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    const RUN: &str = "01890000-0000-7000-8000-000000000001";
    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn parses(words: &[&str]) -> bool {
        Arguments::try_parse_from(std::iter::once(&"countersign").chain(words)).is_ok()
    }

    #[test]
    fn the_commands_are_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_decision_names_its_turn_and_its_digest() {
        let whole = [
            "decide", "approve", RUN, "--turn", "1", "--digest", DIGEST, "--as", "user:ada",
        ];
        assert!(parses(&whole));
        for missing in [3, 5, 7] {
            let mut words = whole.to_vec();
            words.drain(missing..missing + 2);
            assert!(!parses(&words), "{words:?}");
        }
    }

    #[test]
    fn what_cannot_be_meant_does_not_parse() {
        for (at, word) in [
            (2, "1"),
            (4, "0"),
            (4, "-1"),
            (6, "sha256:00"),
            (8, "ada"),
            (8, "group:ops"),
        ] {
            let mut words = [
                "decide", "deny", RUN, "--turn", "1", "--digest", DIGEST, "--as", "user:ada",
            ];
            words[at] = word;
            assert!(!parses(&words), "{words:?}");
        }
    }
}
