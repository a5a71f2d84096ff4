//! `countersign completions SHELL`: the script with which a shell completes our commands.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::arguments::Arguments;
use super::exit::Exit;
use super::screen;

/// What `completions` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "bash: countersign completions bash > ~/.local/share/bash-completion/completions/countersign\n\
                        fish: countersign completions fish > ~/.config/fish/completions/countersign.fish\n\
                        zsh:  countersign completions zsh > a folder of $fpath, as _countersign"
)]
pub struct CompletionsArguments {
    /// Which shell.
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "countersign",
        &mut script,
    );
    screen::write(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
